"""How amounts are written for people: GPU time, bytes, money, durations, scores with their uncertainty. Pure; text only, no markup.

Stored units are integers (milliseconds, bytes, micro-units); a missing amount is an em dash, never 0.
"""

import math
from decimal import ROUND_HALF_EVEN, Decimal

MISSING = "—"
MS_PER_HOUR = 3_600_000
MICROS = 1_000_000


def _whole(value: float | Decimal) -> bool:
    return value == int(value)


def _signed(text: str) -> str:
    """A true minus sign, so that figures align with the plus and dash signs of the type."""
    return text.replace("-", "\u2212", 1) if text.startswith("-") else text


def gpu_hours(ms: int | None) -> str:
    """Milliseconds of GPU time as hours: `11.2`, `24`, `1,211`; under a hundredth of an hour `<0.01`."""
    if ms is None:
        return MISSING
    hours = Decimal(ms) / MS_PER_HOUR
    if _whole(hours):
        return _signed(f"{hours:,.0f}")
    size = abs(hours)
    if size < Decimal("0.01"):
        return "<0.01" if hours > 0 else "\u2212<0.01"
    places = 2 if size < 1 else 1 if size < 100 else 0
    return _signed(f"{hours:,.{places}f}")


def gpu_time(ms: int) -> str:
    """GPU time with its unit: `1 GPU-hour`, `24 GPU-hours`."""
    hours = gpu_hours(ms)
    return f"{hours} GPU-hour" if hours == "1" else f"{hours} GPU-hours"


def size(count: int | None) -> str:
    """Bytes in decimal units: `1 byte`, `412 bytes`, `1.5 MB`."""
    if count is None:
        return MISSING
    if abs(count) < 1000:
        return plural(count, "byte", "bytes")
    amount = float(count)
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        amount /= 1000
        if abs(amount) < 999.5 or unit == "PB":
            break
    return _signed(f"{amount:,.1f} {unit}" if abs(amount) < 99.95 else f"{amount:,.0f} {unit}")


def money(micros: int | None, currency: str = "") -> str:
    """Micro-units as an amount with two decimals, four when less than a cent: `12.34 EUR`, `0.0034`."""
    if micros is None:
        return MISSING
    amount = Decimal(micros) / MICROS
    places = 4 if 0 < abs(amount) < Decimal("0.01") else 2
    return f"{_signed(f'{amount:,.{places}f}')} {currency}".rstrip()


def duration(seconds: float | None) -> str:
    """Seconds as `44 s`, `12 min`, `2 h 48`, `3 d 04 h`; a fraction only under ten seconds."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if seconds < 0:
        return "\u2212" + duration(-seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s" if not _whole(seconds) else f"{seconds:.0f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes:02d}"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days} d {hours:02d} h"


def figure(value: int, unit: str) -> str:
    """An amount of a budget's unit as a bare figure, for sentences that say the unit once: `1,211`, `12.50`, `3.2 GB`."""
    match unit:
        case "gpu_ms":
            return gpu_hours(value)
        case "api_micros":
            return money(value)
        case "storage_bytes":
            return size(value)
        case "wall_seconds":
            return duration(value)
        case _:
            return f"{value:,}"


def amount(value: int, unit: str) -> str:
    """An amount with its unit: `24 GPU-hours`, `12.50`, `3.2 GB`, `48 runs`."""
    match unit:
        case "gpu_ms":
            return gpu_time(value)
        case "runs":
            return plural(value, "run", "runs")
        case "slots":
            return plural(value, "slot", "slots")
        case _:
            return figure(value, unit)


def plural(count: int, one: str, many: str) -> str:
    """`1 run`, `0 runs`, `1,211 runs`."""
    return f"{_signed(f'{count:,}')} {one if abs(count) == 1 else many}"


def number(value: float | Decimal | None, uncertainty: float | Decimal | None = None, places: int | None = None) -> str:
    """A score. With an uncertainty both are rounded to its second significant digit (GUM 7.2.6): `1612 ± 18`, `0.412 ± 0.012`.

    Without one: integers as they are, others to four significant digits unless `places` says how many decimals. NaN is
    written `NaN`, infinities as signs: a number that a run reported is shown as it was reported.
    """
    if value is None:
        return MISSING
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "\u2212∞"
    exact = Decimal(str(value))
    if uncertainty is not None and math.isfinite(uncertainty) and uncertainty > 0:
        error = Decimal(str(uncertainty))
        if error.adjusted() >= 15:
            return f"{_power(exact)} ± {_power(error)}"
        step = Decimal(1).scaleb(error.adjusted() - 1)
        rounded = error.quantize(step, rounding=ROUND_HALF_EVEN)
        step = Decimal(1).scaleb(rounded.adjusted() - 1)  # 0.0996 rounds up into the next digit
        return f"{_plain(exact, step)} ± {_plain(error, step)}"
    if places is not None:
        return _plain(exact, Decimal(1).scaleb(-places))
    if _whole(exact) and abs(exact) < Decimal(10) ** 15:
        return _grouped(f"{exact:f}".split(".")[0])
    if exact and not -4 <= exact.adjusted() < 15:
        return _power(exact)
    return _plain(exact, Decimal(1).scaleb(min(exact.adjusted() - 3, 0)))


def _plain(value: Decimal, step: Decimal) -> str:
    if value.adjusted() - step.adjusted() > 26:  # more digits than the decimal context carries: no rounding would be seen
        return _power(value)
    rounded = value.quantize(step, rounding=ROUND_HALF_EVEN)
    return _grouped(f"{rounded + 0:f}")


def _power(value: Decimal) -> str:
    return _signed(f"{value:.3e}".replace("e+", "e"))


def _grouped(text: str) -> str:
    """Thousands are set apart from five digits on, so that a score such as 1612 stays in one piece."""
    sign, digits = ("\u2212", text[1:]) if text.startswith("-") else ("", text)
    whole, dot, fraction = digits.partition(".")
    if not (whole + fraction).strip("0"):
        sign = ""
    return sign + (f"{int(whole):,}" if len(whole) > 4 else whole) + dot + fraction
