"""WSGI entry; gunicorn serves `labsite.wsgi`."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
application = get_wsgi_application()
