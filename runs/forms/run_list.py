"""The filters above the list of runs. Everything stands in the address; a value that names nothing finds nothing and can be taken away."""

from collections.abc import Sequence
from urllib.parse import urlencode

from django import forms
from django.http import QueryDict

from runs.lifecycle import RunStatus
from runs.queries.run_columns import LONGEST_NAME
from runs.queries.run_list import GROUPS, Choices, RunFilter
from runs.queries.run_order import known_sort

GROUP_WORDS = {"waiting": "waiting", "active": "under way", "open": "not ended", "ended": "ended", "failures": "failed in some way"}
NAMES = {
    "q": "name",
    "status": "state",
    "benchmark": "benchmark",
    "agent": "agent",
    "pool": "pool",
    "person": "asked for by",
    "since": "since",
}


class RunFilterForm(forms.Form):
    """Read from a query string; `wanted()` is what it asks for, `chips()` what can be taken away again."""

    use_required_attribute = False

    q = forms.CharField(required=False, max_length=200)
    status = forms.CharField(required=False, max_length=40)
    benchmark = forms.CharField(required=False, max_length=64)
    agent = forms.CharField(required=False, max_length=64)
    pool = forms.CharField(required=False, max_length=64)
    person = forms.CharField(required=False, max_length=150)
    since = forms.DateField(
        required=False, widget=forms.DateInput(attrs={"type": "date"}), error_messages={"invalid": "Write the day as 2026-11-28."}
    )
    failures = forms.CharField(required=False, max_length=6)
    sort = forms.CharField(required=False, max_length=LONGEST_NAME + 1)

    def __init__(self, query: QueryDict, choices: Choices) -> None:
        super().__init__(query)
        self.query = query
        states: list[tuple[str, str]] = list(GROUP_WORDS.items())
        each = [(status.value, status.value.replace("_", " ")) for status in RunStatus]
        self._select("status", "Any state", [("Groups", states), ("States", each)])
        self._select("benchmark", "Any benchmark", choices.benchmarks)
        self._select("agent", "Any agent", choices.agents)
        self._select("pool", "Any pool", choices.pools)
        self._select("person", "Anyone", choices.people)
        self.fields["q"].widget = forms.TextInput(
            attrs={"type": "search", "class": "filter-text", "placeholder": "Name or number", "aria-label": "Name or number"}
        )
        self.fields["since"].widget.attrs["aria-label"] = "Asked for since"

    def _select(self, name: str, empty: str, choices: Sequence[tuple[str, object]]) -> None:
        shown: list[tuple[str, object]] = [("", empty), *choices]
        self.fields[name].widget = forms.Select(choices=shown, attrs={"aria-label": NAMES[name].capitalize()})

    def wanted(self) -> RunFilter:
        """The filter; a field that cannot be read asks for nothing and says so beside it."""
        self.is_valid()
        given = self.cleaned_data
        status = given.get("status", "")
        return RunFilter(
            text=given.get("q", ""),
            status=status if status in GROUPS or status in set(RunStatus) else "",
            benchmark=given.get("benchmark", ""),
            agent=given.get("agent", ""),
            pool=given.get("pool", ""),
            person=given.get("person", ""),
            since=given.get("since"),
            hides_failures=given.get("failures") == "hidden",
            sort=known_sort(given.get("sort", "")),
        )

    def chips(self) -> list[tuple[str, str]]:
        """Words of each filter that is on, with the query string without it."""
        return [
            (f"{words}: {self._words(name, self.query.get(name, ''))}", self.without(name))
            for name, words in NAMES.items()
            if self.query.get(name, "").strip() and name not in self.errors
        ]

    def without(self, *names: str) -> str:
        """The query string with these parameters, and the place in the list, taken away."""
        return with_query(self.query, **dict.fromkeys(names))

    def _words(self, name: str, value: str) -> str:
        if name == "status":
            return GROUP_WORDS.get(value, value.replace("_", " "))
        return value[:60]


def with_query(query: QueryDict, **changes: str | Sequence[str] | None) -> str:
    """A query string like `query` with some parameters set or, by None, removed; begins at the first page. Always starts with `?`."""
    kept = {key: [value for value in values if value] for key, values in query.lists() if key not in changes and key != "after"}
    return "?" + urlencode(kept | {key: value for key, value in changes.items() if value is not None}, doseq=True)
