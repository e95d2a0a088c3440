"""How records are shown: documents as JSON, HTML and text, and the one drawing module of notebooks and reports."""
