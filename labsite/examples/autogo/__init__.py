"""autogo-main: a Go player that learns from its own games, by runs that play, train and judge."""
