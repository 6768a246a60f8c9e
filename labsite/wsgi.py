"""WSGI entry; gunicorn serves `labsite.wsgi`."""

import gc
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
application = get_wsgi_application()

# The master loads this once and forks its workers: what stands now is left alone by their collectors, and so stays shared between them.
gc.collect()
gc.freeze()
