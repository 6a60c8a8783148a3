"""A Django REST framework project in one file: one list of items behind each of the framework's three paginations.

Run by the server's own Python, not by ours: `python drf_app.py PORT COUNT`. It keeps its records in SQLite in memory.
"""

import sys
from datetime import UTC, datetime, timedelta

import django
from django.conf import settings

_MODULE = sys.modules[__name__]
settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=_MODULE,
    USE_TZ=True,
    SECRET_KEY="of a test",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "file:items?mode=memory&cache=shared"}},
    INSTALLED_APPS=["rest_framework"],
    REST_FRAMEWORK={
        "UNAUTHENTICATED_USER": None,
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    },
)
django.setup()

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection, models  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework import generics, pagination, serializers  # noqa: E402


class Item(models.Model):
    """What is listed."""

    name = models.TextField()
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    updated_at = models.DateTimeField()

    class Meta:
        app_label = "items"


class ItemSerializer(serializers.ModelSerializer):
    class Meta:
        model = Item
        fields = ("id", "name", "amount", "updated_at")


class Pages(pagination.PageNumberPagination):
    page_size_query_param = "page_size"


class Offsets(pagination.LimitOffsetPagination):
    default_limit = 10


class Cursors(pagination.CursorPagination):
    page_size = 25
    ordering = ("updated_at", "id")


class Items(generics.ListAPIView):
    serializer_class = ItemSerializer

    def get_queryset(self):  # type: ignore[no-untyped-def]
        asked = self.request.query_params
        found = Item.objects.order_by("id")
        if "since" in asked:
            found = found.filter(updated_at__gte=asked["since"])
        return found.filter(updated_at__lt=asked["until"]) if "until" in asked else found


urlpatterns = [
    path("pages/", Items.as_view(pagination_class=Pages)),
    path("offsets/", Items.as_view(pagination_class=Offsets)),
    path("cursors/", Items.as_view(pagination_class=Cursors)),
]


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """A test's output is not a web server's log."""


def main() -> None:
    port, count = int(sys.argv[1]), int(sys.argv[2])
    keep = connection.cursor()  # the database lives as long as one connection
    with connection.schema_editor() as editor:
        editor.create_model(Item)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    Item.objects.bulk_create(
        Item(name=f"item {n}", amount=f"{n}.25", updated_at=start + timedelta(hours=3 * (n * 7919 % count)))
        for n in range(count)
    )
    server = ThreadedWSGIServer(("127.0.0.1", port), _Quiet)
    server.set_app(get_wsgi_application())
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
    keep.close()


if __name__ == "__main__":
    main()
