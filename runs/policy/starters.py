"""Documents to begin with, by name."""

from typing import Any

STARTERS: dict[str, dict[str, Any]] = {
    "next-sweep": {
        "trigger": {"on": "sweep_ended", "agent": "worker"},
        "conditions": [{"check": "nothing_under_way"}, {"check": "target_not_reached"}, {"check": "budget_left", "gpu_hours": 1}],
        "action": {
            "do": "launch_sweep",
            "agent": "worker",
            "benchmark": "accuracy",
            "inputs": [{"dataset": "table"}],
            "choose": {
                "rule": "successive_halving",
                "axes": {"learning_rate": {"low": 0.0001, "high": 0.1, "scale": "log"}},
                "resource": "epochs",
                "least": 3,
                "most": 27,
                "eta": 3,
                "first": 9,
            },
        },
        "limits": {"decisions": 20, "gpu_hours_a_week": 10, "failures": 3, "cooldown_minutes": 1},
    },
    "nightly-evaluation": {
        "trigger": {"on": "schedule", "every": "day", "at": "03:30"},
        "conditions": [{"check": "queue_short", "at_most": 0}],
        "action": {"do": "launch_run", "agent": "judge", "benchmark": "accuracy", "inputs": [{"promoted": "champion", "required": True}]},
        "limits": {"gpu_hours_a_week": 5, "failures": 3},
    },
    "tell-when-reached": {
        "trigger": {"on": "evaluation_scored", "benchmark": "accuracy"},
        "conditions": [{"check": "best_score", "at_least": 0.9}],
        "action": {"do": "notify", "words": "A score of 0.9 was reached."},
        "limits": {"decisions": 1},
    },
    "ask-before-training": {
        "trigger": {"on": "dataset_grew", "dataset": "table"},
        "action": {"do": "ask", "question": "The data has grown. Train again?", "choices": ["train", "wait"], "hours": 72},
        "limits": {"decisions": 20, "cooldown_minutes": 60},
    },
}
