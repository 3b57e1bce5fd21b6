"""`farmwatch lab templates`: web archives in, content and boilerplate of their pages out."""
