"""`manage.py up`: everything for one machine, started in order, kept running, ended in order."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.core.management import get_commands
from django.core.management.base import BaseCommand

from labsite.embedded import pool_python
from labsite.embedded.children import Child
from labsite.embedded.home import Home, StartError
from labsite.embedded.servers import Servers, environment_with, running_servers
from labsite.embedded.supervisor import Progress, Stop, Supervisor
from labsite.embedded.unchanged import is_stamped, migrations_stamp, set_stamp, static_stamp
from labsite.embedded.web import Address
from labsite.sign_ins import sign_in_table
from workspaces.queries.installation import UNDECIDED

MANAGE = (sys.executable, "manage.py")
READY_SECONDS = 60.0
INTERRUPT_SECONDS = 60.0
WEB_WORKERS = 2
WEB_THREADS = 4
EXAMPLES = ("w2s", "autogo")


class Command(BaseCommand):
    help = "Start the database, the queue, the web server, the workers and the clock; Ctrl-C ends them all."
    requires_system_checks = []  # they would ask a database that does not run yet

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--json", dest="as_json", action="store_true", help="print one JSON line when ready instead of the block of text"
        )

    def handle(self, *, as_json: bool = False, **options: object) -> None:
        progress, stop = Progress(sys.stderr if as_json else sys.stdout), Stop()
        home = Home(Path(settings.LABSITE_HOME))
        try:
            address = Address.of(os.environ)
            with home.locked():
                _Start(home, address, progress, stop, as_json=as_json).run()
        except KeyboardInterrupt:
            pass
        except StartError as refusal:
            self.stderr.write(f"labsite: {refusal}")
            sys.exit(1)
        progress("stopped")


class _Start:
    """One start, from the lock to the end."""

    def __init__(self, home: Home, address: Address, progress: Progress, stop: Stop, as_json: bool) -> None:
        self.home = home
        self.address = address
        self.progress = progress
        self.stop = stop
        self.as_json = as_json
        self.dispatchers = dispatchers(os.environ)
        self.runs = Path(settings.LABSITE_RUNS)
        self.commands = get_commands()
        self.has_tables = False
        self.filling: list[str] = []  # example laboratories that are being made while pages answer already

    def run(self) -> None:
        self.address.refuse_taken(self.home.was_left_running())
        pool_python.prepare_runs(self.runs)
        self.home.note_running(self.address.url)
        try:
            with running_servers(self.home, os.environ, self.progress, self.stop.check) as servers:
                environment = environment_with(servers, self.home) | {"LABSITE_RUNS": str(self.runs)}
                self.serve(Supervisor(self.home, environment, self.progress, self.stop), servers)
        finally:
            self.home.note_stopped()

    def serve(self, supervisor: Supervisor, servers: Servers) -> None:
        background: list[Child] = []
        try:
            self.prepare(supervisor, servers)
            self.has_tables = True
            self.start_programs(supervisor)
            if not pool_python.is_ready(self.runs):
                background.append(supervisor.launch("pool-python", [sys.executable, "-m", "labsite.embedded.pool_python", str(self.runs)]))
                self.progress("the local pool's Python is being installed; runs wait for it")
            for name in EXAMPLES if os.environ.get("LABSITE_EXAMPLES") != "0" else ():
                if not is_stamped(self.home, f"example-{name}", name):
                    background.append(supervisor.launch(f"example-{name}", [*MANAGE, "example", name, "--stamp"]))
                    self.filling.append(name)
            self.progress("ready")
            self.tell()
            supervisor.watch(servers, background)
        finally:
            self.progress.block("")
            self.progress("stopping")
            for child in background:
                child.stop(5)
                child.end_group()
            supervisor.end("clock", "worker")
            supervisor.end("web")
            if self.has_tables and "interrupt_local" in self.commands and servers.fallen() is None:
                self.interrupt(supervisor)

    def prepare(self, supervisor: Supervisor, servers: Servers) -> None:
        """Static files and tables, where something changed since the last start."""
        static_root = Path(settings.STATIC_ROOT)
        static = static_stamp(static_root)
        collecting = None
        if not (static_root.exists() and is_stamped(self.home, "static", static)):
            collecting = supervisor.launch("collectstatic", [*MANAGE, "collectstatic", "--no-input", "--clear", "--verbosity=0"])
        try:
            migrations, applied = migrations_stamp(servers.addresses["LABSITE_OWNER_DATABASE_URL"])
            if not (applied and is_stamped(self.home, "migrations", migrations)):
                supervisor.finish(supervisor.launch("migrate", [*MANAGE, "migrate", "--no-input", "--verbosity=1"]), "migrate")
                set_stamp(self.home, "migrations", migrations)
                self.progress("tables ready")
            if collecting:
                supervisor.finish(collecting, "collectstatic")
                set_stamp(self.home, "static", static)
                self.progress("static files ready")
        finally:
            if collecting:
                collecting.stop(5)

    def start_programs(self, supervisor: Supervisor) -> None:
        """Web server, workers, clock; back once the site answers."""
        web = supervisor.keep("web", web_server(self.address.bind))
        first = supervisor.launch("first-start", [*MANAGE, "first_start", "--keep"]) if "first_start" in self.commands else None
        try:
            deadline = time.monotonic() + READY_SECONDS
            while missing := self.address.missing():
                self.stop.check()
                if web.code is not None:
                    raise StartError(f"the web server ended with code {web.code}: {web.last_words()}")
                if time.monotonic() > deadline:
                    raise StartError(f"the site is not ready after {READY_SECONDS:.0f} s: {missing}")
                time.sleep(0.1)
            self.progress("pages answer")
            if first:
                supervisor.finish(first, "first_start")
                if UNDECIDED in first.said():
                    self.progress(UNDECIDED)
        finally:
            if first:
                first.stop(5)
        for number in range(1, self.dispatchers + 1):
            supervisor.keep(f"worker-dispatch-{number}", [*MANAGE, "work", "dispatch"])
        supervisor.keep("worker-watch", [*MANAGE, "work", "watch"])
        supervisor.keep("worker-collect", [*MANAGE, "work", "collect"])
        supervisor.keep("worker-export", [*MANAGE, "work", "export"])
        supervisor.keep("worker-default", [*MANAGE, "work", "default"])
        if "clock" in self.commands:
            supervisor.keep("clock", [*MANAGE, "clock"])

    def tell(self) -> None:
        """Where it answers, and the sign-ins that nobody has been shown yet."""
        sign_ins = self.home.sign_ins.read_text().splitlines() if self.home.sign_ins.exists() else []
        if self.as_json:
            said = {"url": self.address.url, "pid": os.getpid(), "home": str(self.home.path), "sign_ins": sign_ins}
            print(json.dumps(said), flush=True)
            self.home.sign_ins.unlink(missing_ok=True)
            return
        lines = ["", f"  labsite answers at  {self.address.url}", ""]
        lines += [f"  {line}" for line in sign_in_table(map(json.loads, sign_ins))] + [""] * bool(sign_ins)
        lines += [
            f"  data {self.home.path}   runs {self.runs}   logs {self.home.logs}",
            *(["  The example laboratories are at work and fill over the next minutes; their home pages show it."] * bool(self.filling)),
            "  Ctrl-C stops it; the next start goes on from here.",
            "",
        ]
        if self.progress.block("\n".join(lines)):
            self.home.sign_ins.unlink(missing_ok=True)

    def interrupt(self, supervisor: Supervisor) -> None:
        """End the attempts that run on this machine; their runs go back to the queue."""
        child = supervisor.launch("interrupt-local", [*MANAGE, "interrupt_local"])
        try:
            child.process.wait(INTERRUPT_SECONDS)
        except subprocess.TimeoutExpired:
            said = f"local attempts are not all ended after {INTERRUPT_SECONDS:.0f} s; the next start takes the rest up again"
            self.progress(said)
            return
        finally:
            child.stop(5)
        if child.code != 0:
            self.progress(f"local attempts could not be ended: {child.last_words()}")


def web_server(bind: str, timeout: int = 60, silence: float | None = None) -> list[str]:
    """gunicorn's command. Threads, so that a slow upload or download neither counts as a worker that hangs nor keeps others from their pages;
    `timeout` is how long a worker may not answer its master, `silence` how many seconds a client may pause within a request."""
    command = [sys.executable, "-m", "gunicorn", "labsite.wsgi", "--bind", bind, "--workers", str(WEB_WORKERS)]
    command += [
        "--worker-class",
        "labsite.web_worker.Worker",
        "--threads",
        str(WEB_THREADS),
        "--timeout",
        str(timeout),
        "--graceful-timeout",
        "10",
    ]
    command += [] if silence is None else ["--env", f"LABSITE_SILENCE_SECONDS={silence}"]
    return [*command, "--preload", "--no-control-socket", "--log-level", "warning"]


def dispatchers(environment: Mapping[str, str]) -> int:
    """How many workers start runs: LABSITE_WORKERS, default 2."""
    text = environment.get("LABSITE_WORKERS") or "2"
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 64):
        raise StartError(f"LABSITE_WORKERS is {text!r}; it must be a number from 1 to 64")
    return int(text)
