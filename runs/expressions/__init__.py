"""Expressions of CEL (Common Expression Language, github.com/google/cel-spec) in policies: read, bounded, and evaluated in a process of their own."""
