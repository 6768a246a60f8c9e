#!/usr/bin/env python3
"""Operator's door to labsite; `manage.py help` lists the commands."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.exit(130)  # asked for before a command could say what it does about it: 128 and SIGINT, as shells have it
