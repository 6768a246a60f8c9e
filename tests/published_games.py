"""Published results that ratings are held against: the product's and those of the example agent, whose code travels and shares none with it."""

# Games of the American League East in 1987: Agresti, Categorical Data Analysis, 2nd edition (2002), table 10.10. By home team its wins and
# losses at home against each other team, in the order of TEAMS.
TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
AT_HOME = {
    "Milwaukee": "4-3 4-2 4-3 6-1 4-2 6-0",
    "Detroit": "3-3 4-2 4-3 6-0 6-1 4-3",
    "Toronto": "2-5 4-3 2-4 4-3 4-2 6-0",
    "New York": "3-3 5-1 2-5 4-3 4-2 6-1",
    "Boston": "5-1 2-5 3-3 4-2 5-2 6-0",
    "Cleveland": "2-5 3-3 3-4 4-3 4-2 2-4",
    "Baltimore": "2-5 1-5 1-6 2-4 1-6 3-4",
}


def baseball() -> list[tuple[str, str, int, int]]:
    """(home, away, games won by home, games), of each two at each home."""
    rows = []
    for home, results in AT_HOME.items():
        others = [team for team in TEAMS if team != home]
        for away, result in zip(others, results.split(), strict=True):
            won, lost = map(int, result.split("-"))
            rows.append((home, away, won, won + lost))
    return rows
