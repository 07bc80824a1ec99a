"""The live studio: a page that shows a running query, and from which it can be told what is wanted.

with studio.serve(query, views=[view]) as page:
    print(page.address)
"""

from interpunct.studio.map_view import MapView
from interpunct.studio.server import Served, serve

__all__ = ["MapView", "Served", "serve"]
