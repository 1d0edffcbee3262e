"""The web pages: ``create_app(Site({"trees": OpenArchive("trees", path)}))``."""
