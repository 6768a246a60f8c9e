"""The laboratory's programs, run as a pool runs them: in a run folder, from its bundle, with the pool's Python."""

import ast
import json
import resource
import sys
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from labsite.examples.autogo import plan
from labsite.examples.autogo.bundles import bundle_files
from labsite.examples.ground import AgentPlan
from tests.examples.autogo.bundle import Ended, artifact, dataset, lines, load
from tests.examples.autogo.conftest import Launch

sgf: Any = load("sgf")
SMALL = {"games": 4, "simulations": 8, "replay": "never"}
QUICK = {"epochs": 3, "match_games": 4, "simulations": 8}


@pytest.fixture(scope="module")
def played(launch: Launch) -> Ended:
    ended = launch(plan.SELFPLAY_WORKER, None, {**SMALL, "games": 10, "games_per_piece": 4})
    assert ended.code == 0, ended.stderr
    return ended


@pytest.fixture(scope="module")
def trained(launch: Launch, played: Ended) -> Ended:
    ended = launch(plan.POLICY_RUNNER, {"self-play-window-1": dataset(*pieces(played))}, QUICK)
    assert ended.code == 0, ended.stderr
    return ended


def pieces(played: Ended) -> list[Path]:
    """What a window of this run's games holds."""
    return sorted((played.folder / "outputs").iterdir())


def checkpoint(trained: Ended) -> Path:
    return trained.output("checkpoint.npz")


def refused(ended: Ended, part: str) -> None:
    assert (ended.code, len(ended.stderr.splitlines())) == (2, 1), ended.stderr
    assert ended.stderr.startswith("refused: ")
    assert part in ended.stderr
    assert ended.events("done") == ended.events("artifact") == ended.events("score") == []


def test_self_play_makes_games_positions_and_pieces_of_a_dataset(played: Ended) -> None:
    records = [sgf.read(played.output(f"games-{number:03d}.sgf").read_text()) for number in (1, 2, 3)]
    assert [len(part) for part in records] == [4, 4, 2]
    everything = [record for part in records for record in part]
    assert {(record.size, record.komi, record.black) for record in everything} == {(5, 0.5, "random-weights")}
    said = [(event["path"].removeprefix("outputs/"), event["name"], event["records"]) for event in played.events("dataset")]
    assert said == [
        (f"{what}-{number:03d}.{ending}", "self-play", records)
        for number, count in ((1, 4), (2, 4), (3, 2))
        for what, ending, records in (("games", "sgf", 0), ("positions", "npz", count))
    ]
    assert [event["kind"] for event in played.events("artifact")] == ["games", "positions"] * 3
    assert len(played.metric("moves")) == 10
    assert played.metric("mean_moves") == [sum(len(record.moves) for record in everything) / 10]
    assert played.metric("positions") == [sum(len(record.moves) for record in everything)]
    assert [event["done"] for event in played.events("progress")] == list(range(1, 11))
    assert lines(played.folder / "events.jsonl")[-1] == {"type": "done", "status": "succeeded", "reason": ""}


def test_same_seed_same_bytes_other_seed_other_games(launch: Launch, played: Ended) -> None:
    params = {**SMALL, "games": 10, "games_per_piece": 4}
    again, other = (launch(plan.SELFPLAY_WORKER, None, params, seed=seed) for seed in (7, 8))
    assert [path.name for path in pieces(again)] == [path.name for path in pieces(played)]
    assert all(one.read_bytes() == two.read_bytes() for one, two in zip(pieces(again), pieces(played), strict=True))
    assert other.output("games-001.sgf").read_bytes() != played.output("games-001.sgf").read_bytes()


def test_games_are_replayed_by_gnugo_where_it_is(launch: Launch, gnugo: str) -> None:
    ended = launch(plan.SELFPLAY_WORKER, None, {**SMALL, "games": 12, "replay": "required"})
    assert ended.code == 0, ended.stderr
    assert ended.metric("replayed_games") == [12]
    (note,) = ended.events("note")
    assert note["text"].startswith("GNU Go replayed 12 games with the same moves and captures, and scored the 12 that were settled")


def test_a_game_that_does_not_end_is_scored_and_said(launch: Launch) -> None:
    ended = launch(plan.SELFPLAY_WORKER, None, {**SMALL, "move_cap": 7})
    assert ended.metric("capped_games") == [4]
    assert ended.events("note")[0]["text"] == "4 of 4 games were not over at the move cap; they are scored as they stood."
    records = sgf.read(ended.output("games-001.sgf").read_text())
    assert {len(record.moves) for record in records} == {7}
    assert all("the move cap" in record.comment and record.result[:2] in ("B+", "W+") for record in records)


def test_training_writes_curves_a_checkpoint_and_a_score(trained: Ended) -> None:
    for part in ("train", "validation"):
        for loss in ("policy", "value", "owners"):
            assert len(trained.metric(f"{part}_{loss}_loss")) == 4
    assert trained.metric("train_policy_loss")[-1] < trained.metric("train_policy_loss")[0]
    (made,) = [event for event in trained.events("artifact") if event["kind"] == "checkpoint"]
    assert made["path"] == "outputs/checkpoint.npz"
    assert made["name"].startswith("checkpoint-")
    (score,) = trained.events("score")
    assert (score["benchmark"], score["metric"], score["samples"]) == (plan.FAST_LEARNING.slug, plan.FAST_LEARNING.metric, 4)
    games = sgf.read(trained.output("match.sgf").read_text())
    ours = [record.result[0] == ("B" if record.black == made["name"] else "W") for record in games]
    assert score["value"] == sum(ours) / 4
    assert {record.black for record in games} == {made["name"], "random-weights"}
    assert score["stderr"] > 0


def test_training_is_the_same_again_and_goes_on_from_a_checkpoint(launch: Launch, played: Ended, trained: Ended) -> None:
    window = {"self-play-window-1": dataset(*pieces(played))}
    again, other = (launch(plan.POLICY_RUNNER, window, QUICK, seed=seed) for seed in (7, 8))
    assert checkpoint(again).read_bytes() == checkpoint(trained).read_bytes()
    assert checkpoint(other).read_bytes() != checkpoint(trained).read_bytes()
    further = launch(plan.POLICY_RUNNER, {**window, "checkpoint-1": artifact(checkpoint(trained))}, QUICK)
    assert further.metric("train_policy_loss")[0] == pytest.approx(trained.metric("train_policy_loss")[-1])
    assert "against checkpoint-1" in further.stdout


def test_training_takes_several_windows_and_positions_of_a_run(launch: Launch, played: Ended, trained: Ended) -> None:
    first, second, third = (played.output(f"positions-{number:03d}.npz") for number in (1, 2, 3))
    apart = {"self-play-window-1": dataset(first), "self-play-window-2": dataset(second), "positions-003": artifact(third)}
    ended = launch(plan.POLICY_RUNNER, apart, QUICK)
    assert ended.metric("train_policy_loss") == trained.metric("train_policy_loss")


def test_what_is_learned_from_three_runs_beats_random_weights(launch: Launch) -> None:
    """The purpose of it all: games of random weights, trained on, make a player that beats them; shown in an arena of its own seed."""
    runs = [launch(plan.SELFPLAY_WORKER, None, {"replay": "never"}, seed=seed) for seed in (1, 2, 3)]
    window = {
        "self-play-window-1": dataset(
            *(run.output("positions-001.npz").rename(run.folder / f"{number}.npz") for number, run in enumerate(runs))
        )
    }
    learned = launch(plan.POLICY_RUNNER, window, {"match_games": 0})
    arena = launch(plan.ARENA_JUDGE, {"checkpoint-1": artifact(checkpoint(learned))}, {"games": 40}, seed=99)
    elo, share = arena.events("score")
    assert share["value"] >= 0.8
    assert elo["value"] - 1.96 * elo["stderr"] > 100


def test_an_arena_rates_every_player_and_scores_the_first(launch: Launch, played: Ended, trained: Ended) -> None:
    other = launch(plan.POLICY_RUNNER, {"self-play-window-1": dataset(*pieces(played))}, {**QUICK, "learning_rate": 0.02, "epochs": 12})
    inputs = {"checkpoint-a": artifact(checkpoint(other)), "checkpoint-b": artifact(checkpoint(trained))}
    params = {"games": 6, "simulations": 8, "random_mover": True}
    ended, again = (launch(plan.ARENA_JUDGE, inputs, params) for _ in range(2))
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.output("ratings.json").read_text())
    names = {"checkpoint-a", "checkpoint-b", "random-weights", "random-mover"}
    assert set(document["ratings"]) == names
    assert document["reference"] == "random-weights"
    assert len(document["matches"]) == 6
    elo, share = ended.events("score")
    assert (elo["benchmark"], elo["metric"], elo["samples"]) == (plan.ARENA.slug, plan.ARENA.metric, 18)
    assert elo["value"] == document["ratings"]["checkpoint-a"]["elo"]
    assert elo["stderr"] == document["ratings"]["checkpoint-a"]["standard_error"]
    (met,) = [row for row in document["matches"] if (row["first"], row["second"]) == ("checkpoint-a", "random-weights")]
    assert share["value"] == met["points_of_first"] / 6
    games = sgf.read(ended.output("games.sgf").read_text())
    colours = [(record.black, record.white) for record in games]
    assert len(games) == 36
    assert colours.count(("checkpoint-a", "random-weights")) == colours.count(("random-weights", "checkpoint-a")) == 3
    assert all(ended.output(name).read_bytes() == again.output(name).read_bytes() for name in ("ratings.json", "games.sgf"))


def test_a_sequential_match_ends_once_it_is_decided(launch: Launch, trained: Ended) -> None:
    inputs = {"checkpoint-a": artifact(checkpoint(trained))}
    params = {"games": 200, "simulations": 8, "sequential": True, "elo0": -1000, "elo1": -600}
    ended, again = (launch(plan.ARENA_JUDGE, inputs, params) for _ in range(2))
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.output("ratings.json").read_text())
    test, (met,) = document["sequential_test"], document["matches"]
    assert (test["verdict"], test["games"], met["games"]) == ("H1", met["games"], ended.events("score")[0]["samples"])
    assert test["log_likelihood_ratio"] >= test["bounds"][1]
    assert met["games"] % 16 == 0
    assert met["games"] < 200
    points = sum(place * pairs / 2 for place, pairs in enumerate(test["pairs_by_points"]))
    assert (sum(test["pairs_by_points"]), points) == (met["games"] / 2, met["points_of_first"])
    assert "at least -600 Elo is accepted against -1000" in ended.events("note")[-1]["text"]
    assert ended.output("ratings.json").read_bytes() == again.output("ratings.json").read_bytes()
    undecided = launch(plan.ARENA_JUDGE, inputs, {**params, "games": 4, "elo0": 0, "elo1": 1})
    assert json.loads(undecided.output("ratings.json").read_text())["sequential_test"]["verdict"] == "open"
    assert launch(plan.ARENA_JUDGE, inputs, {**params, "elo0": 5, "elo1": 5}).code == 2


def test_gnugo_takes_part_where_it_is(launch: Launch, trained: Ended, gnugo: str) -> None:
    params = {"games": 2, "simulations": 8, "gnugo_levels": [0]}
    ended = launch(plan.ARENA_JUDGE, {"checkpoint-a": artifact(checkpoint(trained))}, params)
    assert ended.code == 0, ended.stderr
    assert "gnugo-level-0" in json.loads(ended.output("ratings.json").read_text())["ratings"]


@pytest.fixture
def without_gnugo(launch: Launch, trained: Ended, monkeypatch: pytest.MonkeyPatch) -> Launch:
    """Bundles that look for GNU Go where nothing is, as in a pool that does not have it."""

    def files(name: str) -> dict[str, bytes]:
        found = bundle_files(name)
        assert found["gnugo.py"].count(b'shutil.which("gnugo", path=SEARCH_PATH)') == 1
        return {**found, "gnugo.py": found["gnugo.py"].replace(b"path=SEARCH_PATH", b'path="/nonexistent"')}

    monkeypatch.setattr("tests.examples.autogo.bundle.bundles.bundle_files", files)
    return launch


def test_without_gnugo_it_is_said_and_the_rest_goes_on(without_gnugo: Launch, trained: Ended) -> None:
    ended = without_gnugo(plan.SELFPLAY_WORKER, None, {**SMALL, "replay": "where_installed"})
    assert [event["text"] for event in ended.events("note")] == ["GNU Go is not installed in this pool; the games were not replayed by it."]
    assert ended.code == 0
    refused(without_gnugo(plan.SELFPLAY_WORKER, None, {**SMALL, "replay": "required"}), "GNU Go is not installed in this pool")
    params = {"games": 2, "simulations": 8, "gnugo_levels": [1]}
    ended = without_gnugo(plan.ARENA_JUDGE, {"checkpoint-a": artifact(checkpoint(trained))}, params)
    assert [event["text"] for event in ended.events("note")] == [
        "GNU Go is not installed in this pool; the arena goes on without its levels."
    ]
    assert len(ended.events("score")) == 2


def test_a_gnugo_that_answers_wrong_fails_the_run_in_words(
    launch: Launch, trained: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its place a program that plays A1 always: the second time the point is occupied."""
    fake = tmp_path / "gnugo"
    answer = "f'={n} A1\\n' if word == 'genmove' else f'={n}\\n'"
    text = f"import sys\nfor line in sys.stdin:\n    n, word = line.split()[:2]\n    print({answer}, flush=True)\n"
    fake.write_text(f"#!{sys.executable}\n{text}")
    fake.chmod(0o755)

    def files(name: str) -> dict[str, bytes]:
        found = bundle_files(name)
        return {**found, "gnugo.py": found["gnugo.py"].replace(b"path=SEARCH_PATH", f"path={str(tmp_path)!r}".encode())}

    monkeypatch.setattr("tests.examples.autogo.bundle.bundles.bundle_files", files)
    params = {"games": 2, "simulations": 2, "gnugo_levels": [1], "random_weights": False}
    ended = launch(plan.ARENA_JUDGE, {"checkpoint-a": artifact(checkpoint(trained))}, params)
    refused(ended, "GNU Go, level 1 wants to play A1: the point is occupied")


@pytest.mark.parametrize(
    ("agent", "params", "part"),
    [
        (plan.SELFPLAY_WORKER, {"size": 1}, "parameter size is 1"),
        (plan.SELFPLAY_WORKER, {"size": 10}, "parameter size is 10"),
        (plan.SELFPLAY_WORKER, {"games": 0}, "parameter games is 0"),
        (plan.SELFPLAY_WORKER, {"komi": float("nan")}, "parameter komi is nan"),
        (plan.SELFPLAY_WORKER, {"play_on": 1}, "parameter play_on is 1; it must be true or false"),
        (plan.SELFPLAY_WORKER, {"replay": "maybe"}, "must be one of where_installed, required, never"),
        (plan.SELFPLAY_WORKER, {"game": 4}, "unknown parameter game"),
        (plan.SELFPLAY_WORKER, {"games": 51, "games_per_piece": 1}, "51 games are 51 pieces of 1; 50 at most"),
        (plan.POLICY_RUNNER, {}, "no positions among the inputs (given: none)"),
        (plan.ARENA_JUDGE, {}, "no checkpoint among the inputs"),
        (plan.ARENA_JUDGE, {"games": 1}, "parameter games is 1"),
    ],
)
def test_a_job_that_cannot_be_done_is_refused_in_one_line(launch: Launch, agent: AgentPlan, params: dict[str, Any], part: str) -> None:
    refused(launch(agent, None, params), part)


@pytest.mark.parametrize(
    ("params", "part"),
    [
        ({"learning_rate": 0}, "parameter learning_rate is 0"),
        ({"learning_rate": 10, "l2": 10, "epochs": 60}, "training diverged in epoch"),
        ({"validation_share": 1}, "parameter validation_share is 1"),
        ({"komi": "much"}, "parameter komi is 'much'"),
    ],
)
def test_training_refuses_in_one_line(launch: Launch, played: Ended, params: dict[str, Any], part: str) -> None:
    refused(launch(plan.POLICY_RUNNER, {"self-play-window-1": dataset(*pieces(played))}, {**QUICK, **params}), part)


def test_training_refuses_what_is_no_window(launch: Launch, played: Ended, trained: Ended, tmp_path: Path) -> None:
    window, odd = dataset(played.output("positions-001.npz")), tmp_path / "odd.npz"
    odd.write_bytes(b"PK\x03\x04 nothing")
    refused(launch(plan.POLICY_RUNNER, {"odd": dataset(odd)}, QUICK), "odd/000001-odd.npz holds no positions")
    refused(launch(plan.POLICY_RUNNER, {"odd": dataset(checkpoint(trained))}, QUICK), "holds no positions of schema autogo.positions.v1")
    refused(launch(plan.POLICY_RUNNER, {"only-games": dataset(played.output("games-001.sgf"))}, QUICK), "(given: only-games)")
    with zipfile.ZipFile(odd, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("stones.npy", "w") as member:
        for _ in range(520):
            member.write(bytes(1024 * 1024))
    refused(launch(plan.POLICY_RUNNER, {"bomb": dataset(odd)}, QUICK), "bytes when unpacked")
    other = launch(plan.SELFPLAY_WORKER, None, {**SMALL, "size": 4})
    two = {"a": window, "b": dataset(other.output("positions-001.npz"))}
    refused(launch(plan.POLICY_RUNNER, two, QUICK), "positions of boards of 4 and 5")
    twice = {"a": window, "one": artifact(checkpoint(trained)), "two": artifact(checkpoint(trained))}
    refused(launch(plan.POLICY_RUNNER, twice, QUICK), "2 checkpoints among the inputs (one, two)")


def test_an_arena_refuses_what_is_nobody_to_play(launch: Launch, trained: Ended, played: Ended) -> None:
    one = {"checkpoint-a": artifact(checkpoint(trained))}
    refused(launch(plan.ARENA_JUDGE, one, {"random_weights": False}), "nobody to play")
    refused(launch(plan.ARENA_JUDGE, one, {"gnugo_levels": [11]}), "gnugo_levels must be a list of whole numbers from 0 to 10")
    refused(launch(plan.ARENA_JUDGE, one, {"gnugo_levels": "1"}), "gnugo_levels must be a list")
    refused(launch(plan.ARENA_JUDGE, {"notes": artifact(played.output("games-001.sgf"))}), "notes holds no .npz files")
    refused(launch(plan.ARENA_JUDGE, {"random-weights": artifact(checkpoint(trained))}), "players need different names")


def test_every_size_can_be_played_and_learned(launch: Launch) -> None:
    for size in (2, 3, 9):
        games = launch(plan.SELFPLAY_WORKER, None, {"size": size, "games": 2, "simulations": 4})
        assert games.code == 0, games.stderr
        learned = launch(plan.POLICY_RUNNER, {"w": dataset(games.output("positions-001.npz"))}, {**QUICK, "match_games": 2})
        assert learned.code == 0, learned.stderr
        assert not any(str(value) == "NaN" for value in learned.metric("train_policy_loss"))


def test_each_agent_ends_within_seconds_by_its_defaults(launch: Launch) -> None:
    """On one core, so by the processor's time: others may want the core too."""
    spent = [children_seconds()]
    games = launch(plan.SELFPLAY_WORKER)
    spent.append(children_seconds())
    learned = launch(plan.POLICY_RUNNER, {"self-play-window-1": dataset(games.output("positions-001.npz"))})
    spent.append(children_seconds())
    arena = launch(plan.ARENA_JUDGE, {"checkpoint-a": artifact(checkpoint(learned))})
    spent.append(children_seconds())
    assert [ended.code for ended in (games, learned, arena)] == [0, 0, 0]
    assert len(games.metric("moves")) == 24
    assert all(after - before < 20 for before, after in pairwise(spent)), spent


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_bundles_import_only_themselves_numpy_and_the_standard_library() -> None:
    for agent in plan.AGENTS:
        files = bundle_files(agent.bundle)
        assert agent.argv[1] in files
        allowed = {"numpy", *sys.stdlib_module_names, *(file.removesuffix(".py") for file in files)}
        for content in files.values():
            for node in ast.walk(ast.parse(content)):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                modules += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
                assert {module.partition(".")[0] for module in modules} <= allowed
    for wrong in ("common", "../autogo", "none"):
        with pytest.raises(ValueError, match="no bundle"):
            bundle_files(wrong)


def test_plan_holds_together() -> None:
    agents = {agent.slug: agent for agent in plan.AGENTS}
    benchmarks = {benchmark.slug for benchmark in plan.BENCHMARKS}
    for run in (*plan.SELF_PLAY_RUNS, plan.SWEEP.shared, plan.ARENA_RUN):
        schema = dict(agents[run.agent].parameters)
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(dict(run.params))
        assert run.benchmark in benchmarks
        assert set(run.checkpoints_of) <= {plan.SWEEP.name}
    for name, values in plan.SWEEP.space["axes"].items():
        schema = dict(agents[plan.SWEEP.shared.agent].parameters)["properties"][name]
        assert all(Draft202012Validator(schema).is_valid(value) for value in values)
    assert plan.WORKSPACE.objective_benchmark in benchmarks
    games = sum(run.params["games"] for run in plan.SELF_PLAY_RUNS)
    assert games // plan.SELF_PLAY.window_records >= 42 >= max(plan.SWEEP.shared.windows)
    # The sweep learns from the first run's games alone, so that they are the same wherever the laboratory is made.
    assert max(plan.SWEEP.shared.windows) * plan.SELF_PLAY.window_records <= plan.SELF_PLAY_RUNS[0].params["games"]
    assert len({run.seed for run in plan.SELF_PLAY_RUNS}) == len(plan.SELF_PLAY_RUNS)


def test_the_schemas_defaults_are_the_programs(launch: Launch, played: Ended, trained: Ended) -> None:
    """Giving all of them changes nothing; each program knows each parameter of its schema."""
    window, one = {"w": dataset(played.output("positions-001.npz"))}, {"checkpoint-a": artifact(checkpoint(trained))}
    cases: tuple[tuple[AgentPlan, dict[str, Any], dict[str, Any], str], ...] = (
        (plan.SELFPLAY_WORKER, {}, {"games": 3, "replay": "never"}, "games-001.sgf"),
        (plan.POLICY_RUNNER, window, {"match_games": 2}, "match.sgf"),
        (plan.ARENA_JUDGE, one, {"games": 2}, "games.sgf"),
    )
    for agent, inputs, fewer, output in cases:
        defaults = {name: entry["default"] for name, entry in dict(agent.parameters)["properties"].items()}
        spoken, silent = (launch(agent, inputs, {**params, **fewer}) for params in (defaults, {}))
        assert spoken.code == silent.code == 0, spoken.stderr
        text, other = (run.output(output).read_text() for run in (spoken, silent))
        if agent is plan.POLICY_RUNNER:  # a checkpoint notes its parameters, and its name is its content's
            text, other = ("".join(part.split("checkpoint-")[0] for part in each.splitlines() if ";B" in each) for each in (text, other))
            assert spoken.metric("train_policy_loss") == silent.metric("train_policy_loss")
        assert text == other
