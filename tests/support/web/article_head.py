"""The metadata by which a page says that it is an article; the short texts of tests are hardly told as one without."""

ARTICLE_HEAD = (
    "<head><meta property='og:type' content='article'><meta name='author' content='A. River'>"
    "<meta property='article:published_time' content='2021-05-04'></head>"
)
