"""All objects of a kind, page by page."""

from functools import partial

from kubescene.client.http.discovery import ApiResource
from kubescene.client.http.records import Items, RecordPage, ReplyForm, parse_list
from kubescene.client.http.requests import Reply, Requests
from kubescene.errors import ExpiredError


def list_all(
    requests: Requests,
    api: ApiResource,
    *,
    namespace: str = "",
    labels: str = "",
    fields: str = "",
    page_size: int,
) -> RecordPage:
    """One state of all objects, of one namespace if named."""
    try:
        return _pages(requests, api, namespace, labels, fields, page_size)
    except ExpiredError:
        # It was forgotten between two pages: all at once then, which cannot expire.
        return _pages(requests, api, namespace, labels, fields, 0)


def newest_revision(requests: Requests, api: ApiResource) -> int:
    """How far the server has come."""
    page = requests.read(api.collection(), partial(_read_page, api.form), limit="1")
    return page.revision


def _pages(
    requests: Requests, api: ApiResource, namespace: str, labels: str, fields: str, page_size: int
) -> RecordPage:
    items: Items = []
    token = ""
    while True:
        page = requests.read(
            api.collection(namespace),
            partial(_read_page, api.form),
            labelSelector=labels,
            fieldSelector=fields,
            limit=str(page_size or ""),
            **{"continue": token},
        )
        items += page.items
        token = page.next
        if not token:
            return RecordPage(items, page.revision, "")


def _read_page(form: ReplyForm, reply: Reply) -> RecordPage:
    return parse_list(form, reply.body)
