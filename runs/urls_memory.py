"""Pages of memory."""

from runs.views import memory
from workspaces.access import Kind, Permission
from workspaces.pages import page

GET_AND_POST = ("GET", "POST")
WRITE, APPROVE, KIND = Permission.WRITE_MEMORY, Permission.APPROVE, Kind.MEMORY

urlpatterns = [
    page("memory/", memory.memory_list, name="memory-list", needs=Permission.VIEW, kind=KIND),
    page("memory/new/", memory.memory_new, name="memory-new", needs=WRITE, kind=KIND, methods=GET_AND_POST),
    page("memory/stale/", memory.memory_stale, name="memory-stale", needs=Permission.VIEW, kind=KIND),
    page("memory/<str:memoryentry>/", memory.memory, name="memory", needs=Permission.VIEW, kind=KIND),
    page("memory/<str:memoryentry>/revise/", memory.memory_revise, name="memory-revise", needs=WRITE, kind=KIND, methods=GET_AND_POST),
    page("memory/<str:memoryentry>/review/", memory.memory_review, name="memory-review", needs=APPROVE, kind=KIND, methods=GET_AND_POST),
    page("memory/<str:memoryentry>/dates/", memory.memory_dates, name="memory-dates", needs=APPROVE, kind=KIND, methods=GET_AND_POST),
    page(
        "memory/<str:memoryentry>/withdraw/", memory.memory_withdraw, name="memory-withdraw", needs=WRITE, kind=KIND, methods=GET_AND_POST
    ),
    page("memory/<str:memoryentry>/undo/", memory.memory_undo, name="memory-undo", needs=WRITE, kind=KIND, methods=GET_AND_POST),
]
