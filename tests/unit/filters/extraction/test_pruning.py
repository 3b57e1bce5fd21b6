"""Consent dialogs and comments leave a tree before extraction; pages about cookies, and threads, keep their text."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from filters.extraction import pruning
from filters.extraction.html_tree import parse
from filters.extraction.pruning import prune
from filters.measure.extractors import extract
from filters.settings import MeasureSettings
from filters.structure.page_lines import visible_bytes, visible_text

EXTRACTORS = pytest.mark.parametrize("extractor", ["trafilatura", "blocks", "auto", "resiliparse"])
ASKING = {
    "en": "We and our partners store cookies on your device and process personal data. Accept all or manage settings.",
    "de": "Wir und unsere Partner verwenden Cookies und verarbeiten personenbezogene Daten. Alle akzeptieren.",
    "fr": "Nous utilisons des cookies et traitons des données personnelles. Tout accepter ou tout refuser.",
    "es": "Usamos cookies propias y de terceros y tratamos datos personales. Aceptar todo o rechazar todo.",
    "it": "Usiamo cookie e trattiamo dati personali per la pubblicità. Accetta tutti i cookie oppure rifiuta.",
    "nl": "Wij gebruiken cookies en verwerken persoonsgegevens voor advertenties. Alles accepteren of weigeren.",
    "pl": "Używamy plików cookie i przetwarzamy dane osobowe w celach reklamowych. Zaakceptuj lub odrzuć.",
    "ru": "Мы используем файлы cookie и обрабатываем персональные данные для рекламы. Принять все или отклонить.",
    "ja": "当社はCookieを使用し、広告のために個人情報を処理します。すべて同意する、または拒否する。",
    "zh": "我们使用Cookie并处理个人信息以展示广告。全部接受或拒绝。",
    "ar": "نستخدم ملفات تعريف الارتباط ونعالج البيانات لعرض الإعلانات. قبول الكل أو رفض الكل.",
}
MANAGERS = [
    *("id='onetrust-banner-sdk' role='dialog'", "id=onetrust-consent-sdk", "id=CybotCookiebotDialog"),
    "id=qc-cmp2-container",
    *("id=didomi-host", "id=usercentrics-root", "id=truste-consent-track", "id=sp_message_container_123"),
    *("class='cmplz-cookiebanner cmplz-hidden'", "class='cky-consent-container cky-box-bottom-left'", "id=klaro"),
    *("class='osano-cm-window__dialog osano-cm-dialog'", "id=BorlabsCookieBox", "id=iubenda-cs-banner"),
    *("id=axeptio_overlay", "class=fc-consent-root", "id=tarteaucitronRoot", "id=cmpbox", "id=cookie-law-info-bar"),
    *("id=hs-eu-cookie-confirmation", "class='cc-window cc-banner'", "id=moove_gdpr_cookie_info_bar", "id=ccc"),
]
BANNERS = [
    *("id=cookie-banner", "class='site-cookie-notice fixed'", "id=cookieConsent", "class='js-cookie-bar'"),
    *("id=gdpr-popup", "class='banner banner--cookie'", "role=dialog class=modal", "aria-modal=true"),
    *("role=alertdialog", "class=cookies role=dialog"),
    *("aria-label='Cookie banner'", "class=hint aria-label='Cookie consent prompt'", "class=gdpr"),
    *("class='eu-cookie-law-widget'", "id=redim-cookiehint-bottom", "class='notice_cookies'", "class=consent-wall"),
]
THREADS = [
    *("id=comments class=comments-area", "id=disqus_thread", "class=comment-list", "id=fb-comments"),
    *("class=post-comments", "itemscope itemtype='https://schema.org/Comment'", "itemprop=comment"),
    "itemtype='http://schema.org/UserComments'",
    *("class='CommentBox'", "id=respond class=comment-respond", "class='wp-block-comments'", "id=kommentare"),
    *("class=post__comments", "class=CommentsSection_root__a1b2c", "class='comments--wide'"),
    "class='spot-im-comments'",
    *("class=commentaires", "id=comentarios", "id=remark42", "class='hyvor-talk-view'", "id=livefyre-comments"),
]
PRAISE = "I liked this post a lot, thank you for writing it, dear author!"
BOATS = "Sentence {} tells how the people of the village moved their boats to higher ground before the rain came back."


def page(*parts: str) -> str:
    return f"<html><head><title>Boats</title></head><body>{''.join(parts)}</body></html>"


def article(sentences: int = 20, tag: str = "article") -> str:
    return f"<{tag}><h1>Boats</h1>{''.join(f'<p>{BOATS.format(number)}</p>' for number in range(sentences))}</{tag}>"


def container(attributes: str, text: str, times: int = 6, tag: str = "div") -> str:
    """An element with the text in numbered paragraphs, and two buttons."""
    paragraphs = "".join(f"<p>{number}. {text}</p>" for number in range(times))
    return f"<{tag} {attributes}><h2>Note</h2>{paragraphs}<button>OK</button><button>More</button></{tag}>"


def pruned(html: str) -> str:
    tree = parse(html)
    prune(list(tree.iter()), visible_bytes(visible_text(tree)))
    return " ".join(" ".join(tree.find("body").itertext()).split())


def main_text(html: str, extractor: str) -> str:
    return extract(html, "", msgspec.structs.replace(MeasureSettings(), extractor=extractor)).text


@pytest.mark.parametrize("sentences", [8, 20])
@pytest.mark.parametrize(
    ("extractor", "tag"),
    [
        *((name, tag) for name in ("trafilatura", "blocks", "auto") for tag in ("article", "aside")),
        ("resiliparse", "article"),
    ],
)
def test_a_consent_dialog_is_no_main_text(extractor: str, sentences: int, tag: str) -> None:
    """The dialog of a consent manager is not extracted, and an article beside it is, also a short one in an aside."""
    dialog = container("id='onetrust-banner-sdk' role='dialog' class='cookie-consent'", ASKING["en"])
    text = main_text(page(dialog, f"<div class=page>{article(sentences, tag)}</div>"), extractor)
    assert text.count("Sentence") == sentences
    assert "partners" not in text


@pytest.mark.parametrize("attributes", MANAGERS)
@pytest.mark.parametrize("tag", ["div", "dialog"])
def test_dialogs_of_consent_managers_go_by_their_name(attributes: str, tag: str) -> None:
    """A container with the id or class of a known manager goes, whatever it says and whatever its element."""
    dialog = container(attributes, "Any text in any language, and a long one.", 12, tag)
    assert pruned(page(dialog, article(8))) == pruned(page(article(8)))


@pytest.mark.parametrize("attributes", MANAGERS)
def test_most_of_a_page_goes_by_a_managers_name_only_if_it_asks(attributes: str) -> None:
    """A container with such a name and more than half of the text goes if it asks for consent, and stays otherwise."""
    assert pruned(page(container(attributes, ASKING["en"], 20), "<p>End.</p>")) == "End."
    assert pruned(page(container(attributes, "The ferry leaves at nine.", 20), "<p>End.</p>")).count("ferry") == 20


@pytest.mark.parametrize(
    "attributes",
    [
        *("class=klaro", "class=ccc", "class=ccc-content", "class=cassie-story", "class=cc_container", "class=cli-bar"),
        *("class=cookiehub-docs", "id=cookiereports", "class=appconsent-docs", "class=optanon-category-C0002"),
    ],
)
def test_names_that_resemble_those_of_managers_take_nothing(attributes: str) -> None:
    """A class like the id of a manager, or another word that begins like one, is no dialog."""
    assert "ferry" in pruned(page(container(attributes, "The ferry leaves at nine."), article()))


@pytest.mark.parametrize("attributes", ["class=cookie-modal", "role=dialog", "aria-label='Cookie banner'"])
def test_a_large_dialog_goes_from_beside_prose(attributes: str) -> None:
    """A dialog with most of the text goes if it asks for consent and the rest has prose of its own."""
    dialog = container(attributes, ASKING["en"], 40)
    assert pruned(page(dialog, article(8))) == pruned(page(article(8)))
    assert "partners" in pruned(page(dialog, "<p>About us</p>" * 30))


@pytest.mark.parametrize(
    ("attributes", "goes"),
    [("id=onetrust-banner-sdk", True), ("role=dialog", True), ("aria-modal=true", True), ("class=cookie-info", False)],
)
def test_a_heading_in_a_dialog_makes_no_page_of_it(attributes: str, goes: bool) -> None:
    """A dialog that asks for consent goes with its h1; one that does not ask, and a named part of the page, stay."""
    heading = "<h1>Your choice</h1>"
    asking = f"<div {attributes}>{heading}<p>{ASKING['en']}</p></div>"
    assert ("partners" in pruned(page(asking, article()))) is not goes
    assert "ferry" in pruned(page(f"<div {attributes}>{heading}<p>The ferry leaves at nine.</p></div>", article()))


@pytest.mark.parametrize("tag", ["article", "div"])
def test_a_post_by_its_topic_stays(tag: str) -> None:
    """A post about consent, with that as topic, stays, as a long article named as a banner; a short one goes."""
    post = container("class='post hentry category-gdpr tag-cookie-consent'", ASKING["en"], 9, tag)
    assert pruned(page(post, article(8, "section"))).count("partners") == 9
    named = container("class=cookie-notice", ASKING["en"], 20, "article")
    assert pruned(page(named, article(8, "section"))).count("partners") == 20
    banner = container("class=cookie-notice", ASKING["en"], 2, "article")
    assert pruned(page(banner, article())) == pruned(page(article()))


@pytest.mark.parametrize(
    "text",
    [
        "We use cookies to give you the best experience.Ok",
        "This site uses cookies. If you continue to use it, we assume that you are happy with it.",
        "Diese Website benutzt Cookies. Wenn du weitermachst, gehen wir von deinem Einverständnis aus.",
        "<p>This site uses cookies.</p><a>More</a><p>Got it!</p>",
    ],
)
def test_a_banner_may_take_consent_for_granted(text: str) -> None:
    """A banner goes that offers no more than to agree."""
    assert pruned(page(f"<div class=cookie-notice>{text}</div>", article())) == pruned(page(article()))
    assert "cookies" in pruned(page("<div class=cookie-notice>The cookies are gone.</div>", article())).lower()


@pytest.mark.parametrize("language", ASKING)
@pytest.mark.parametrize("attributes", BANNERS)
def test_other_banners_go_if_they_ask_for_consent(attributes: str, language: str) -> None:
    """A container by the name of a banner, or a dialog, goes where it speaks of cookies or data and of a choice."""
    alone = pruned(page(article()))
    assert pruned(page(container(attributes, ASKING[language]), article())) == alone
    assert pruned(page(article(), container(attributes, ASKING[language], 1, "section"))) == alone
    assert "ferry" in pruned(page(container(attributes, "The ferry leaves at nine."), article()))


def test_names_are_compared_without_case() -> None:
    """Each container goes, however its name is written, also where a page writes it in two ways."""
    both = container("id=Comments", "I liked this post.", 1) + container("id=comments", "I liked it, too.", 1)
    long = container(f"class='comments {'x' * 10_000}'", "I liked it as well.", 1)
    assert pruned(page(article(), both, long)) == pruned(page(article()))


@pytest.mark.parametrize("tag", ["dialog", "amp-consent"])
def test_dialog_elements_need_no_name(tag: str) -> None:
    """An element for dialogs goes if it asks for consent."""
    assert pruned(page(container("", ASKING["de"], 3, tag), article())) == pruned(page(article()))
    assert "ferry" in pruned(page(container("", "The ferry leaves at nine.", 3, tag), article()))


@pytest.mark.parametrize("attributes", ["role=dialog", "id=klaro", "class=comments", "class=cookie-box"])
@pytest.mark.parametrize("text", ["The ferry leaves at nine. ", ASKING["en"], "<p></p>"])
def test_nested_containers_are_read_once(attributes: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200 nested containers, only a few are read, whatever is in them: the time is not quadratic."""
    read: list[Any] = []

    def counted(element: Any) -> bytes:
        read.append(element)
        return visible_text(element)

    tree = parse(page(article(2, "div") + f"<div {attributes}>" * 200 + text * 50))
    monkeypatch.setattr(pruning, "visible_text", counted)
    prune(list(tree.iter()), visible_bytes(visible_text(tree)))
    assert 0 < len(read) <= 5


@pytest.mark.parametrize(
    "html",
    [
        page(f"<main class='cookie-consent'>{article()}</main>"),
        page(f"<div class='cookie-consent'>{article()}</div>", container("class=x", ASKING["en"])),
        page("<div id=cookie-notice>", *(f"<h2>Part {n}</h2><p>{ASKING['en']}</p>" for n in range(30)), "</div>"),
        page(*(container("class='cookie-info'", ASKING["en"], 3, "section") for _ in range(9)), "<p>The end.</p>"),
        page(container("class='cookie-policy'", ASKING["en"]), article(30)),
        page("<div class='recipe cookie-bar'>Bake the cookie bars, and allow them to cool.</div>", article(30)),
        page(article(), container("class='recipe cookies'", "Mix the cookies. Accept all the help.", 3, "section")),
        page(container("id=cookie-declaration", ASKING["en"]), article(30)),
        page(f"<body class='didomi-popup-open cookie-consent'>{article()}"),
    ],
    ids=["main", "around an article", "policy", "parts", "policy by name", "recipe", "recipes", "declaration", "body"],
)
def test_a_page_about_cookies_keeps_its_text(html: str) -> None:
    """What holds an article or most of the page, or does not ask for consent, stays whole."""
    before = " ".join(" ".join(parse(html).find("body").itertext()).split())
    assert pruned(html) == before


@EXTRACTORS
def test_comments_are_no_main_text(extractor: str) -> None:
    """What visitors write below an article is not extracted."""
    thread = container("id=comments class=comments-area", PRAISE)
    text = main_text(page(f"<div class=content>{article()}{thread}</div>"), extractor)
    assert text.count("Sentence") == 20
    assert "dear author" not in text


@pytest.mark.parametrize("attributes", THREADS)
@pytest.mark.parametrize("tag", ["div", "section", "details", "ol"])
def test_containers_of_comments_go(attributes: str, tag: str) -> None:
    """Well-known containers of comments go, whatever their element."""
    assert pruned(page(article(), container(attributes, PRAISE, 5, tag))) == pruned(page(article()))


POST = f"<h4>Anna</h4><p>{PRAISE}</p>"
NESTED = {
    "WordPress": f"<ol class=comment-list><li class=comment><article class=comment-body>{POST}</article></li></ol>",
    "in an area": f"<div id=comments><ol><li class=comment><article>{POST}</article></li></ol></div>",
    "Drupal": f"<section class=comment-wrapper><article class=comment><h1>Re: Boats</h1>{POST}</article></section>",
    "microdata": f"<div class=comments><article itemscope itemtype='https://schema.org/Comment'>{POST}</article></div>",
}


@pytest.mark.parametrize("thread", NESTED)
def test_articles_in_comments_are_comments(thread: str) -> None:
    """A comment goes that is marked up as an article, and with it what holds it."""
    assert pruned(page(article(), NESTED[thread])) == pruned(page(article()))


def test_an_article_in_a_container_of_comments_stays() -> None:
    """What holds an article that is no comment stays, and the comments beside that article go."""
    thread = "<div class=comment-list><p>I liked this post.</p></div>"
    assert pruned(page(f"<div class=comments>{article(4)}{thread}</div>")) == pruned(page(article(4)))


def test_answers_stay_below_a_dialog() -> None:
    """Answers that are most of a page's own text stay, however long a consent dialog is."""
    answers = container("class=comments", BOATS.format(1), 3)
    html = page(container("id=onetrust-banner-sdk", ASKING["en"], 30), "<p>Who moved the boats?</p>", answers)
    assert pruned(html).count("Sentence") == 3


@pytest.mark.parametrize("attributes", ["class=comments", "itemtype='https://schema.org/Comment'", "class=comment"])
def test_a_thread_keeps_its_posts(attributes: str) -> None:
    """Where comments are most of the page's text, as in a thread, all of them stay."""
    posts = [container(attributes, "This is a post of the thread, with a question or an answer.", 2) for _ in range(20)]
    html = page("<div><h2>Which rope?</h2><p>I look for a rope.</p></div>", *posts)
    assert pruned(html).count("post of the thread") == 40


def test_names_that_only_resemble_are_kept() -> None:
    """Commentary, a comment's count in a link, and a menu of cookies are no containers."""
    names = [
        *("class=commentary", "id=commented", "class='content-container'", "class='fortune-cookies'"),
        *("id=consents-form", "class=spotimage", "class='spot-image'", "class=comments_open"),
        "class=gallery__item__comment",
    ]
    code = "<pre><code><span class='token comment'># the ferry</span></code></pre>"
    html = page(article(30), *(container(name, "The ferry leaves at nine, says the captain.") for name in names), code)
    assert pruned(html).count("ferry") == 6 * len(names) + 1
