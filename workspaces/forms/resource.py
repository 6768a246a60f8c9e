"""Forms of limits, pools and the objective. Amounts are entered in units of people and kept as whole numbers, exactly or not at all."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django import forms

from workspaces.commands.limit import LARGEST, WINDOWS
from workspaces.forms.fields import DayField, SlugField
from workspaces.models import Benchmark, Engine, Limit, Pool, Unit
from workspaces.standings import CALENDAR, name_of
from workspaces.units import MS_PER_HOUR

# unit -> (what people count in, how many of the unit's integers that is)
COUNTED: dict[str, tuple[str, int]] = {
    Unit.GPU_MS: ("GPU-hours", MS_PER_HOUR),
    Unit.API_MICROS: ("of currency", 1_000_000),
    Unit.STORAGE_BYTES: ("GB", 10**9),
    Unit.RUNS: ("runs", 1),
    Unit.WALL_SECONDS: ("hours", 3600),
    Unit.SLOTS: ("slots", 1),
}


def whole(value: Decimal, unit: str) -> int:
    """`value` in the unit's integers. ValidationError where it is finer than the unit counts, or larger than it can hold."""
    words, size = COUNTED[unit]
    exact = value * size
    if exact != exact.to_integral_value():
        raise forms.ValidationError(f"{words[:1].upper() + words[1:]} are counted in steps of 1/{size:,}; this is finer.")
    if not 0 <= exact <= LARGEST:
        raise forms.ValidationError(f"An amount lies between 0 and {LARGEST // size:,}.")
    return int(exact)


def counted(amount: int, unit: str) -> Decimal:
    """The other way, for the form that changes a limit."""
    value = Decimal(amount) / COUNTED[unit][1]
    return value.quantize(Decimal(1)) if value == value.to_integral_value() else value.normalize()


def amount_field(unit: str = "") -> forms.DecimalField:
    hint = "GPU-hours, currency, GB, runs, hours or slots, as the limit counts." if not unit else ""
    shown = {"data-unit": COUNTED[unit][0]} if unit else {}
    widget = forms.TextInput(attrs={"inputmode": "decimal", **shown})
    return forms.DecimalField(label="Amount", min_value=0, max_digits=24, decimal_places=9, help_text=hint, widget=widget)


def marks_field() -> forms.CharField:
    return forms.CharField(
        label="Tell at", required=False, max_length=60, initial="80, 100", widget=forms.TextInput(attrs={"data-unit": "%"}),
        help_text="Percent of it, spent in a week or month, at which whoever manages budgets is told once. Empty: never.",
    )  # fmt: skip


def marks_of(text: str) -> list[int]:
    """`50, 80, 100` as numbers; ValidationError where one is none."""
    try:
        return [int(part) for part in text.replace("%", " ").replace(",", " ").split()]
    except ValueError as error:
        raise forms.ValidationError("Write whole percentages, such as 50, 80, 100.") from error


def why(label: str = "Why", *, required: bool = True) -> forms.CharField:
    return forms.CharField(label=label, max_length=1000, required=required, help_text="Everyone who may read the record will see it.")


class LimitForm(forms.Form):
    """A limit that is not there yet."""

    limit = forms.ChoiceField(
        label="What is limited",
        choices=[(f"{unit} {window}", name_of(unit, window)) for unit, windows in WINDOWS.items() for window in windows],
    )
    mode = forms.ChoiceField(
        label="Above it",
        choices=[("stop", "nothing starts"), ("approval", "an approver decides"), ("warn", "it only warns")],
        help_text="Runs at once wait instead until there is room, or only warn.",
        initial="stop",
    )
    amount = amount_field()
    thresholds = marks_field()
    reason = why()

    def clean_thresholds(self) -> list[int]:
        return marks_of(self.cleaned_data["thresholds"])

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if "limit" in cleaned and "amount" in cleaned:
            cleaned["unit"], cleaned["window"] = cleaned.pop("limit").split()
            try:
                cleaned["amount"] = whole(cleaned["amount"], cleaned["unit"])
            except forms.ValidationError as error:
                self.add_error("amount", error)
            if cleaned["window"] not in CALENDAR:
                cleaned["thresholds"] = None  # the field stands on the form whatever is limited
        return cleaned


class LimitChangeForm(forms.Form):
    """A new amount for a limit that stands, or other thresholds."""

    thresholds = marks_field()
    reason = why()
    field_order = ("amount", "thresholds", "reason")

    def __init__(self, *args: Any, limit: Limit, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.unit = limit.unit
        self.fields["amount"] = amount_field(limit.unit)
        self.fields["amount"].initial = counted(limit.amount, limit.unit)
        self.fields["thresholds"].initial = ", ".join(map(str, limit.thresholds))
        if limit.window not in CALENDAR:
            del self.fields["thresholds"]
        self.order_fields(self.field_order)

    def clean_thresholds(self) -> list[int]:
        return marks_of(self.cleaned_data["thresholds"])

    def clean_amount(self) -> int:
        return whole(self.cleaned_data["amount"], self.unit)


class ReasonForm(forms.Form):
    reason = why()


class PoolForm(forms.Form):
    """How much of an engine the workspace uses, how isolated, at which price; and what else its kind of engine asks for."""

    slots = forms.IntegerField(label="Slots", min_value=1, max_value=1000, help_text="Attempts of this workspace at once.")
    isolation = forms.ChoiceField(choices=Pool.Isolation.choices, help_text="What the engine was found to offer when labsite started.")
    gpus_per_slot = forms.DecimalField(
        label="A slot counts as", min_value=Decimal("0.001"), max_value=1000, max_digits=7, decimal_places=3, initial=1,
        widget=forms.TextInput(attrs={"data-unit": "GPU", "inputmode": "decimal"}), help_text="On a machine without GPUs: GPU-equivalents.",
    )  # fmt: skip
    price = forms.DecimalField(
        label="Price of a GPU-hour", min_value=0, max_value=10**6, max_digits=13, decimal_places=6, initial=0,
        widget=forms.TextInput(attrs={"inputmode": "decimal"}),
    )  # fmt: skip
    currency = forms.CharField(max_length=3, min_length=3, initial="EUR", help_text="Three letters, such as EUR.")
    python = forms.CharField(
        label="Python environment there", max_length=200, required=False,
        help_text="Folder of an environment that runs find first on their PATH; empty for the host's own python3.",
    )  # fmt: skip
    secret = forms.ChoiceField(label="SSH key", required=False, help_text="A secret of this workspace that opens the account.")
    partition = forms.CharField(label="Partition", max_length=64, required=False, help_text="Of Slurm; empty for its default.")
    account = forms.CharField(
        label="Account that Slurm charges", max_length=64, required=False, help_text="Empty for the default of the login."
    )
    is_default = forms.BooleanField(label="Runs that name no pool go here", required=False)
    reason = why(required=False)

    of_host: Sequence[str] = ("python", "secret")
    of_slurm: Sequence[str] = ("partition", "account")
    field_order: Sequence[str] = ("slots", "isolation", "python", "secret", "partition", "account")

    def __init__(self, *args: Any, engines: list[Engine], keys: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = {isolation for engine in engines for isolation in engine.isolations or Pool.Isolation.values}
        kept = {self.initial.get("isolation")}  # a pool keeps what it has, although its engine offers it no longer
        choices = [(value, label) for value, label in Pool.Isolation.choices if value in offered | kept]
        self.fields["isolation"] = forms.ChoiceField(choices=choices, help_text=self.base_fields["isolation"].help_text)
        choices = [("", "none"), *((name, name) for name in keys)]
        self.fields["secret"] = forms.ChoiceField(
            label="SSH key", required=False, choices=choices, help_text=self.base_fields["secret"].help_text
        )
        unused = () if any(engine.host for engine in engines) else self.of_host
        if not any(engine.kind == Engine.Kind.SLURM for engine in engines):
            unused = (*unused, *self.of_slurm)
        for name in unused:
            del self.fields[name]
        self.order_fields(self.field_order)

    def values(self) -> dict[str, Any]:
        """Arguments for the commands on pools."""
        cleaned = self.cleaned_data
        return {
            "slots": cleaned["slots"],
            "isolation": cleaned["isolation"],
            "milli_gpu_per_slot": int(cleaned["gpus_per_slot"] * 1000),
            "price_micros_per_gpu_hour": int(cleaned["price"] * 1_000_000),
            "currency": cleaned["currency"].upper(),
            "is_default": cleaned["is_default"],
            **{name: cleaned[name] for name in (*self.of_host, *self.of_slurm) if name in cleaned},
        }

    @staticmethod
    def values_of(pool: Pool) -> dict[str, Any]:
        """What the form shows of a pool."""
        return {
            "slots": pool.slots,
            "isolation": pool.isolation,
            "gpus_per_slot": Decimal(pool.milli_gpu_per_slot) / 1000,
            "price": counted(pool.price_micros_per_gpu_hour, Unit.API_MICROS),
            "currency": pool.currency,
            "is_default": pool.is_default,
            "python": pool.python,
            "secret": pool.secret.name if pool.secret else "",
            "partition": pool.partition,
            "account": pool.account,
        }


class PoolBindForm(PoolForm):
    login = forms.CharField(
        label="Login there", max_length=32, required=False, help_text="For an engine on another host: as whom runs are started."
    )
    folder = forms.CharField(label="Folder there", max_length=200, required=False, help_text="In which runs work, such as ~/labsite-runs.")
    engine = forms.ChoiceField(help_text="A machine that the operators of this installation have set up.")
    slug = SlugField()

    of_host = ("login", "folder", "python", "secret")
    field_order = ("engine", "slug", "slots", "isolation", "login", "folder", "secret", "python", "partition", "account")

    def __init__(self, *args: Any, engines: list[Engine], **kwargs: Any) -> None:
        super().__init__(*args, engines=engines, **kwargs)
        choices = [(engine.slug, f"{engine.slug} ({_place(engine)}, {engine.slots} slots)") for engine in engines]
        self.fields["engine"] = forms.ChoiceField(choices=choices, help_text=self.base_fields["engine"].help_text)
        self.order_fields(self.field_order)

    def values(self) -> dict[str, Any]:
        """Arguments of `bind_pool`."""
        return super().values() | {"engine": self.cleaned_data["engine"], "slug": self.cleaned_data["slug"]}


def _place(engine: Engine) -> str:
    if engine.kind in (Engine.Kind.SSH, Engine.Kind.LOCAL):
        return engine.address or engine.get_kind_display()
    return f"{engine.get_kind_display()} at {engine.address}" if engine.host else engine.get_kind_display()


class ObjectiveForm(forms.Form):
    statement = forms.CharField(
        label="What the group tries to improve", max_length=300, help_text="One sentence that a visitor understands."
    )
    benchmark = forms.ChoiceField(label="Measured on", required=False)
    target = forms.FloatField(label="Score to reach", required=False, widget=forms.TextInput(attrs={"inputmode": "decimal"}))
    due_on = DayField(label="By", required=False)
    reason = why(required=False)

    def __init__(self, *args: Any, benchmarks: list[Benchmark], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "nothing yet"), *((benchmark.slug, benchmark.name) for benchmark in benchmarks)]
        self.fields["benchmark"] = forms.ChoiceField(label="Measured on", required=False, choices=choices)
        self.order_fields(("statement", "benchmark", "target", "due_on", "reason"))
