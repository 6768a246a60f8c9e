"""Settings, grouped by concern; everything that differs between installations comes from the environment (README, "Environment")."""

import functools
import os
import tomllib
from pathlib import Path

import environ
import structlog
from psycopg.conninfo import conninfo_to_dict

from labsite import keys, logs, regions
from labsite.embedded.home import Home
from labsite.embedded.web import url_of

env = environ.Env()

BASE_DIR = Path(__file__).resolve().parent.parent

# --- Where things lie ---------------------------------------------------------------------------------------------------------------------

LABSITE_HOME = Path(env.str("LABSITE_HOME", default=str(BASE_DIR / ".labsite"))).absolute()
LABSITE_RUNS = Path(
    env.str("LABSITE_RUNS", default="/var/lib/labsite" if os.geteuid() == 0 else str(Path.home() / ".local/state/labsite"))
).absolute()
EXPORTS = LABSITE_HOME / "exports"  # of workspaces, until they expire
UPLOADS = LABSITE_HOME / "uploads"  # that arrive in pieces, until they are whole
IMPORTS = LABSITE_HOME / "imports"  # locks of those that are being read
EXPORT_DAYS = env.int("LABSITE_EXPORT_DAYS", default=7)
try:
    LABSITE_REGIONS = regions.read_regions(
        env.str("LABSITE_REGIONS", default=""),
        own=LABSITE_HOME / "store" / "local",
        closed=[LABSITE_RUNS],
        home=LABSITE_HOME,
        told=os.environ,
    )
except ValueError as error:
    raise SystemExit(f"labsite: LABSITE_REGIONS: {error}.") from error
CHECKPOINTS = LABSITE_HOME / "checkpoints"  # signed positions of the audit chains, out of the database's reach
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text())["project"]["version"]
CHECKPOINT_KEY = functools.partial(keys.signing_key, LABSITE_HOME)
SECRETS_KEYS = keys.SecretsKeys(LABSITE_HOME)  # wrap the data keys of workspaces
LABSITE_URL = env.str("LABSITE_URL", default=url_of(env.str("LABSITE_HOST", default=""), env.str("LABSITE_PORT", default="")))

# --- Security -----------------------------------------------------------------------------------------------------------------------------

DEBUG = False
SECRET_KEY = keys.django_key(LABSITE_HOME)
# Loopback is always answered: `up` and load balancers on this machine ask /readyz there, by http also where HTTPS is demanded.
ALLOWED_HOSTS = [
    *env.list("LABSITE_ALLOWED_HOSTS", default=[]),
    *("127.0.0.1", "localhost", "[::1]", env.str("LABSITE_HOST", default="127.0.0.1")),
]
SECURE_REDIRECT_EXEMPT = [r"^livez$", r"^readyz$"]
CSRF_TRUSTED_ORIGINS = env.list("LABSITE_TRUSTED_ORIGINS", default=[])
HTTPS = env.bool("LABSITE_HTTPS", default=False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 14 * 86_400
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000
FILE_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
FILE_UPLOAD_HANDLERS = [
    "workspaces.upload_names.NamesAsSent",
    "django.core.files.uploadhandler.MemoryFileUploadHandler",
    "django.core.files.uploadhandler.TemporaryFileUploadHandler",
]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "font-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

# --- Applications and middleware ----------------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "labsite",
    "workspaces",
    "runs",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "django.forms",
    "allauth",
    "allauth.account",
    "csp",
    "django_htmx",
    "django_rq",
    "django_structlog",
    "guardian",
    "heroicons",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "labsite.middleware.refuse_unreadable",
    "csp.middleware.CSPMiddleware",
    "labsite.middleware.never_store",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "labsite.middleware.refuse_strangers_bodies",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
]
ROOT_URLCONF = "labsite.urls"
WSGI_APPLICATION = "labsite.wsgi.application"
APPEND_SLASH = True

# --- Templates ----------------------------------------------------------------------------------------------------------------------------

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "workspaces.pages.context",
            ],
        },
    }
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

# --- PostgreSQL: the application's role; the owner's serves only migrations (labsite/owner.py) ---------------------------------------------


def database(url: str) -> dict[str, str]:
    """Parts of a libpq URL, `postgresql://...`, sockets and options included."""
    return {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}


# Beside a running `make run` its own servers are found without any variable, so that operators' commands work from a second shell.
_embedded = Home(LABSITE_HOME).addresses() if "DATABASE_URL" not in os.environ else {}
_app = database(env.str("DATABASE_URL", default=_embedded.get("DATABASE_URL", "postgresql:///labsite?user=labsite_app")))
_owner = database(env.str("LABSITE_OWNER_DATABASE_URL", default=_embedded.get("LABSITE_OWNER_DATABASE_URL", "")))
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _app.get("dbname", "labsite"),
        "USER": _app.get("user", ""),
        "PASSWORD": _app.get("password", ""),
        "HOST": _app.get("host", ""),
        "PORT": _app.get("port", ""),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {key: value for key, value in _app.items() if key.startswith("ssl")},
    }
}
APP_ROLE = _app.get("user", "")
OWNER_DATABASE = {"USER": _owner.get("user", _app.get("user", "")), "PASSWORD": _owner.get("password", _app.get("password", ""))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Queue: a doorbell; PostgreSQL is the truth --------------------------------------------------------------------------------------------

# Every parallel test process takes a database of its own, so that one may not ring another's bells.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "")
_redis_url = env.str("REDIS_URL", default=_embedded.get("REDIS_URL", "redis://127.0.0.1:6379/0"))
if _worker.startswith("gw"):
    _redis_url = _redis_url.replace("db=0", f"db={int(_worker[2:]) + 1}")
QUEUES = ("dispatch", "watch", "collect", "export", "default")
_seconds = {"collect": 3600, "export": 3600}  # of one job; collecting goes on in the next one
RQ_QUEUES = {
    name: {
        "URL": _redis_url,
        "DEFAULT_TIMEOUT": _seconds.get(name, 600),
        "DEFAULT_RESULT_TTL": 0,
        "SERIALIZER": "rq.serializers.JSONSerializer",
    }
    for name in QUEUES
}

# Counters of sign-in attempts, shared by all web processes; nothing else is cached.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": _redis_url, "KEY_PREFIX": "labsite-attempts"}}

# --- People -------------------------------------------------------------------------------------------------------------------------------

AUTH_USER_MODEL = "workspaces.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend", "guardian.backends.ObjectPermissionBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "start"
ACCOUNT_ADAPTER = "labsite.accounts.Adapter"
ACCOUNT_FORMS = {"login": "labsite.sign_in.SignInForm"}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_LOGOUT_ON_PASSWORD_CHANGE = True
ACCOUNT_SESSION_REMEMBER = True
# Counted per address and per (address, name; labsite/accounts.py): a stranger who guesses from elsewhere never locks the owner out.
ACCOUNT_RATE_LIMITS = {"login": "60/m/ip", "login_failed": "10/m/ip,5/5m/key"}
# How many proxies stand in front, so that sign-ins are counted by the address of the browser and not of the proxy.
ALLAUTH_TRUSTED_PROXY_COUNT = env.int("LABSITE_PROXIES", default=0)
ANONYMOUS_USER_NAME = None
GUARDIAN_MONKEY_PATCH_USER = False
_mail = env.email_url("EMAIL_URL", default="dummymail://")
EMAIL_BACKEND, EMAIL_HOST, EMAIL_PORT = _mail["EMAIL_BACKEND"], _mail["EMAIL_HOST"] or "localhost", _mail["EMAIL_PORT"] or 25
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail["EMAIL_HOST_USER"] or "", _mail["EMAIL_HOST_PASSWORD"] or ""
EMAIL_USE_TLS, EMAIL_USE_SSL = bool(_mail.get("EMAIL_USE_TLS")), bool(_mail.get("EMAIL_USE_SSL"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.str("LABSITE_MAIL_FROM", default="labsite@localhost")

# --- Language and time --------------------------------------------------------------------------------------------------------------------

USE_I18N = False
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

# --- Static files -------------------------------------------------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = Path(env.str("LABSITE_STATIC", default=str(LABSITE_HOME / "static")))
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},  # no product file goes through Django's storage
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

# --- Logging: one JSON line an event, no request bodies -------------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                logs.without_secrets,
                structlog.processors.JSONRenderer(),
            ],
            "foreign_pre_chain": [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)],
        }
    },
    "filters": {"requests": {"()": logs.RequestTraces}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["requests"]}},
    "root": {"handlers": ["stderr"], "level": env.str("LABSITE_LOG_LEVEL", default="WARNING")},
}
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)

# --- Limits that are stated in the documentation of the API ---------------------------------------------------------------------------------

API_BODY_BYTES = 1_048_576
API_PAGE_SIZE = 50
API_PAGE_SIZE_MAX = 500
LAUNCHES_A_MINUTE = env.int("LABSITE_LAUNCHES_A_MINUTE", default=1_000)  # that one account may ask for in a workspace, refused ones too
UPLOAD_BYTES = env.int("LABSITE_UPLOAD_BYTES", default=2_147_483_648)
IMPORT_BYTES = env.int("LABSITE_IMPORT_BYTES", default=68_719_476_736)  # of one file that is read from another machine
IMPORT_SECONDS = env.int("LABSITE_IMPORT_SECONDS", default=3_300)  # for one import; below what its job may take
IMPORT_HOSTS = env.list("LABSITE_IMPORT_HOSTS", default=[])  # host:port of inner machines that people may import from
IMPORT_FOLDERS = env.list("LABSITE_IMPORT_FOLDERS", default=[])  # engine:/folder of machines of pools that people may import from
