"""`{% load lab %}`: amounts, times, states and icons, as every page writes them."""

import functools
from datetime import UTC, datetime
from decimal import Decimal
from urllib.parse import urlencode
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import template
from django.forms import BoundField
from django.template import Context
from django.template.loader import get_template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from heroicons.templatetags.heroicons import heroicon_mini

from workspaces import units
from workspaces.licences import NOT_KNOWN, address_of, is_expression
from workspaces.models import User
from workspaces.windows import on_clock

register = template.Library()

THEMES = ("auto", "light", "dark")
DAY = 86_400

# status -> (tone, word). The tone carries the shape: circles run or are well, squares need a look, diamonds wait for a person.
STATES = {
    "draft": ("idle", "draft"),
    "awaiting_approval": ("person", "waits for approval"),
    "queued": ("idle", "queued"),
    "starting": ("running", "starting"),
    "running": ("running", "running"),
    "awaiting_input": ("person", "waits for input"),
    "cancelling": ("attention", "cancelling"),
    "succeeded": ("good", "succeeded"),
    "failed": ("bad", "failed"),
    "cancelled": ("idle", "cancelled"),
    "timed_out": ("bad", "timed out"),
    "aborted": ("bad", "aborted"),
    "lost": ("bad", "lost"),
    "created": ("idle", "created"),
    "submitted": ("running", "submitted"),
    "ended": ("idle", "ended"),
    "interrupted": ("attention", "interrupted"),
    "pending": ("person", "waits for a decision"),
    "approved": ("good", "approved"),
    "refused": ("bad", "refused"),
    "expired": ("idle", "expired"),
    "withdrawn": ("idle", "withdrawn"),
    "proposed": ("person", "waits for a decision"),
    "promoted": ("good", "promoted"),
    "superseded": ("idle", "superseded"),
    "suspended": ("bad", "suspended"),
    "admitted": ("good", "admitted"),
    "passed": ("good", "passed"),
    "active": ("good", "active"),
    "ready": ("good", "ready"),
    "done": ("good", "done"),
    "paused": ("attention", "paused"),
    "missing": ("bad", "missing"),
    "unknown": ("attention", "not answering"),
    "archived": ("idle", "archived"),
    "taken": ("idle", "written to a folder"),
    "removed": ("idle", "removed"),
    "declared": ("idle", "declared"),
    "revoked": ("idle", "revoked"),
    "due": ("attention", "new value due"),
    "incomplete": ("attention", "not complete"),
    "unchecked": ("idle", "unchecked"),
    "contaminated": ("bad", "contaminated"),
    "suspicious": ("attention", "suspicious"),
    "clean": ("good", "clean"),
    "holds": ("good", "measures what it did"),
    "moved": ("bad", "moved"),
    "unmeasured": ("attention", "ended without a score"),
}

register.filter("gpu_hours", units.gpu_hours)
register.filter("gpu_time", units.gpu_time)
register.filter("bytes", units.size)
register.filter("money", units.money)
register.filter("duration", units.duration)


@register.simple_tag
def count(amount: int, one: str, many: str) -> str:
    """`{% count 9 "run" "runs" %}` → `9 runs`."""
    return units.plural(amount, one, many)


@register.simple_tag
def number(value: float | Decimal | None, uncertainty: float | Decimal | None = None, places: int | None = None) -> str:
    """`{% number 1612.3 18.4 %}` → `1612 ± 18`."""
    return units.number(value, uncertainty, places)


@register.filter
def score(value: float | Decimal | None) -> str:
    """A number without uncertainty, for use inside other tags: `{{ best|score }}`."""
    return units.number(value)


@register.filter
def short_id(value: UUID | str | None) -> str:
    """The last eight hex digits of a UUID, its prefix kept: `run_0190…` → `run_5e8c41b2`. The first digits are only the time.

    A slug stays as it is.
    """
    if value is None:
        return units.MISSING
    text = str(value)
    prefix, _, rest = text.rpartition("_")
    digits = (rest if prefix else text).replace("-", "").lower()
    if len(digits) == 32 and not digits.strip("0123456789abcdef"):
        return f"{prefix}_{digits[-8:]}" if prefix else digits[-8:]
    return text


@register.simple_tag(takes_context=True)
def when(context: Context, moment: datetime | None, now: datetime | None = None) -> SafeString | str:
    """How long ago or ahead, as `<time>`; the title carries UTC and the workspace's own clock. Needs an aware time."""
    if moment is None:
        return units.MISSING
    return _time(context, moment, _relative(moment, now or timezone.now()))


@register.simple_tag(takes_context=True)
def clock(context: Context, moment: datetime | None, now: datetime | None = None, zone: bool = True) -> SafeString | str:
    """The time on the workspace's clock: `Sunday 07:40 Europe/Berlin`, farther off `15 December 07:40 Europe/Berlin`."""
    if moment is None:
        return units.MISSING
    local, today = on_clock(moment, _zone(context)), (now or timezone.now()).astimezone(_zone(context))
    days = (local.date() - today.date()).days
    day = "today" if days == 0 else f"{local:%A}" if 0 < days < 7 else f"{local.day} {local:%B}"
    if local.year != today.year and not 0 <= days < 7:
        day = f"{day} {local.year}"
    return _time(context, moment, f"{day} {local:%H:%M} {_zone(context).key}" if zone else f"{day} {local:%H:%M}")


def _time(context: Context, moment: datetime, text: str) -> SafeString:
    if timezone.is_naive(moment):
        raise ValueError("a time on a page is aware")
    utc, zone = moment.astimezone(UTC), _zone(context)
    title = f"{utc.day} {utc:%B %Y %H:%M:%S} UTC"
    if zone.key != "UTC":
        title = f"{title} · {on_clock(moment, zone):%a %H:%M} {zone.key}"
    return format_html('<time datetime="{}" title="{}">{}</time>', f"{utc:%Y-%m-%dT%H:%M:%SZ}", title, text)


def _relative(moment: datetime, now: datetime) -> str:
    if timezone.is_naive(moment):
        raise ValueError("a time on a page is aware")
    ahead = (moment - now).total_seconds()
    seconds = abs(ahead)
    if seconds < 60:
        return "now" if ahead <= 0 else "in under a minute"
    if seconds < 3600:
        span = f"{seconds // 60:.0f} min"
    elif seconds < 2 * DAY:
        span = f"{seconds // 3600:.0f} h"
    elif seconds < 14 * DAY:
        span = f"{seconds // DAY:.0f} days"
    else:
        day = moment.astimezone(UTC)
        return f"{day.day} {day:%b}" if day.year == now.year else f"{day.day} {day:%b %Y}"
    return f"in {span}" if ahead > 0 else f"{span} ago"


def _zone(context: Context) -> ZoneInfo:
    name = getattr(context.get("workspace"), "zone", None) or getattr(getattr(context.get("actor"), "user", None), "zone", None) or "UTC"
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


@register.simple_tag
def state(status: str, reason: str = "", *, word: str = "", tone: str = "") -> SafeString:
    """Shape, word and reason of a status: `{% state run.status "pool not answering" %}`; `word` and `tone` override."""
    known_tone, known_word = STATES.get(str(status), ("idle", str(status).replace("_", " ")))
    shown = format_html('<span class="state tone-{}">{}</span>', tone or known_tone, word or known_word)
    return format_html('{} <span class="state-reason">{}</span>', shown, reason) if reason else shown


@register.simple_tag(takes_context=True)
def person(context: Context, user: User | None, length: int = 40) -> SafeString | str:
    """A person's name, leading to the runs they asked for: `{% person run.requested_by %}`."""
    if user is None:
        return units.MISSING
    name = Truncator(user.label).chars(length)
    address = f"{reverse('run-list', args=[context['workspace'].slug])}?{urlencode({'person': user.username})}"
    return format_html('<a class="plain" href="{}"><bdi>{}</bdi></a>', address, name)


@register.simple_tag
def licence(text: str) -> SafeString:
    """A licence as it is stored, an SPDX expression; what is left open, not known, or no such expression says so."""
    if not text:
        return format_html('<span class="tone-attention">{}</span>', "no licence stated")
    if text == NOT_KNOWN:
        return format_html('<span class="tone-attention">{}</span>', "licence not known")
    if not is_expression(text):
        return format_html('<bdi>{}</bdi> <span class="tone-attention">{}</span>', text, "(no SPDX expression)")
    address = address_of(text)
    return format_html('<a href="{}" rel="noreferrer">{}</a>', address, text) if address else format_html("<bdi>{}</bdi>", text)


@register.simple_tag
@functools.lru_cache(maxsize=500)
def icon(name: str, label: str = "", size: int = 16) -> SafeString:
    """An icon of heroicons, hidden from screen readers unless `label` names it."""
    attributes = {"role": "img", "aria_label": label, "aria_hidden": "false"} if label else {}
    return SafeString(heroicon_mini(name, size=size, **{"class": "icon", **attributes}))


@register.simple_tag
@functools.lru_cache(maxsize=20)
def fixed(template: str) -> str:
    """An include that says the same on every page and to everybody, such as the addresses of style sheets: drawn once in a process."""
    return get_template(template).render()


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """What this device chose (cookie), else what the person prefers, else what the device asks for."""
    request, actor = context.get("request"), context.get("actor")
    chosen = request.COOKIES.get("theme", "") if request is not None else ""
    preferred = getattr(getattr(actor, "user", None), "theme", "")
    return next((name for name in (chosen, preferred) if name in THEMES), "auto")


@register.simple_tag(takes_context=True)
def density(context: Context) -> str:
    """How closely the person wants rows to stand."""
    preferred = getattr(getattr(context.get("actor"), "user", None), "density", "")
    return preferred if preferred in User.Density.values else User.Density.COMFORTABLE.value


@register.filter
def unit(field: BoundField) -> str:
    """The unit a form field declares: `IntegerField(widget=NumberInput(attrs={"data-unit": "GPU-hours"}))`."""
    return str(field.field.widget.attrs.get("data-unit", ""))
