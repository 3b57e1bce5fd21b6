"""Takes out of a page what is no text of its author: the dialogs of consent managers, and the comments of visitors.

A container is known by id, class, role or schema.org type. A page may be about cookies, or be a thread: only the dialog
of a known consent manager may hold most of a page's text; if others hold more, all of them stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import Enum
from typing import Any

import re2

from filters.no_page.signs.consent import asks_for_consent
from filters.structure.names import UNSEEN
from filters.structure.page_lines import INLINE, size_of, visible_text

MOST_SHARE = 0.5
"""Share of a page's text that may be taken out."""

_NAME_CHARS = 500  # of an attribute
_NAMING = ("id", "class", "role", "aria-modal", "itemtype", "itemprop")
_WHOLE = frozenset({"html", "head", "body", "main", "article", "h1", "button", *INLINE, *UNSEEN})  # in code, too
_DIALOGS = ("dialog", "amp-consent")
_OF_PAGE = ("main", "article", "h1")  # a page's own elements, which no such container holds


class Part(Enum):
    """The kinds of containers."""

    MANAGER = "the dialog of a known consent manager"
    CONSENT = "a dialog or banner that may ask for consent"
    COMMENTS = "comments of visitors"


def _names(table: str) -> str:
    return "|".join(table.split())


_MANAGERS = _names(
    r"""
    onetrust-(?:consent|banner|pc)-sdk optanon(?:-popup|-alert-box|-show-settings)?[\w-]* cybotcookiebot\w*
    qc-cmp2?-[\w-]+ didomi-(?:host|popup|notice|consent)[\w-]* usercentrics-(?:root|cmp-ui|banner|button)
    uc-(?:banner|main-dialog)[\w-]* truste[-_](?:consent|overlay|popframe|box|cm)[\w-]* trustarc-banner[\w-]*
    consent_blackbar sp_message_(?:container|panel)[\w-]*
    cmplz-(?:cookiebanner|soft-cookiewall|manage-consent)[\w-]*
    cky-(?:consent|modal|overlay|notice|preference)[\w-]* cookie-law-info-(?:bar|again)
    cli-(?:modal|popupbar|bar)[\w-]* wt-cli-cookie-bar[\w-]* osano-cm-[\w-]+ klaro
    borlabs-?cookie-?(?:box|dialog|widget)[\w-]* iubenda-cs-[\w-]+ axeptio_(?:overlay|mount\w*|main\w*)
    fc-consent-root fc-(?:dialog-overlay|dialog-container) tarteaucitron(?:root|alert\w*|services?)? cmpbox\d?
    cmpwrapper ppms_cm_[\w-]+ hs-eu-cookie-[\w-]+ cookiefirst-[\w-]+ cookiescript_[\w-]+ cookiehub[\w-]*
    ch2-(?:container|dialog|settings) termly-[\w-]+ moove_gdpr_(?:cookie|modal)[\w-]* moove-gdpr-[\w-]+
    _?evidon[-_](?:banner|barrier|prefdiag|consent)[\w-]* lanyard_root
    ketch-(?:consent|banner|modal|preferences)[\w-]* transcend-consent[\w-]* ccc
    ccc-(?:overlay|notify|module|content) shopify-pc__[\w-]+ pandectes-[\w-]+ seers-cx-[\w-]+ sd-cmp[\w-]*
    appconsent[\w-]* tc-privacy-wrapper ez-cookie-[\w-]+ adroll_consent[\w-]* cc-(?:window|banner|revoke|grower)
    cc_(?:banner|container)[\w-]* coi-(?:banner|consent)[\w-]* coioverlay cookie-information-template-wrapper
    eu-cookie-compliance-[\w-]+ catapult-cookie-bar cookieconsent:desc uniccmp as-oil real-cookie-banner[\w-]*
    cassie-[\w-]+ gravitocmp[\w-]* cookiereports[\w-]* bcc-consent[\w-]*
    """
)
_ASKS = "cookies?|consent|gdpr|rgpd|dsgvo|ccpa|lgpd|eprivacy"
_SHOWN = _names(
    """
    banners? bar notice notification popup pop-up popover modal dialog dialogue overlay message msg alert box
    consent bottom wrap wrapper container warning disclaimer law info prompt widget window layer panel manager
    settings preferences toast compliance confirmation hint hinweis bandeau aviso melding footer top accept
    acceptance agree agreement opt-?in wall notify snackbar drawer sheet root
    """
)
_CONSENT = (
    rf"dialog|alertdialog|true|(?:\w+[-_])*(?:{_ASKS})|(?:[\w-]*[-_])?(?:{_ASKS})[-_]*(?:{_SHOWN})(?:[-_][\w-]*)?|"
    rf"(?:[\w-]*[-_])?(?:{_SHOWN})[-_]*(?:{_ASKS})"
)
_COMMENTS = _names(
    r"""
    comments? commentlist commentarea
    comment[-_]?(?:list|section|area|container|wrapper|thread|box|block|feed|holder|module)
    comments[-_]*(?:list|section|area|container|wrapper|wrap|thread|box|block|template|content|main|inner|feed|holder|module)
    (?:post|article|entry|blog|user|reader|story|page|news|view|all|facebook|fb|wp|discussion)[-_]?comments?[-_]?(?:list|area|section)?
    comment[-_]respond wp-block-comments[\w-]* disqus_thread disqus[-_](?:comments?|container|section|wrapper)[\w-]*
    dsq-comments? dsq-content livefyre[\w-]* lf-comments? idc-container idcomments\w* kommentare?
    kommentar(?:e|er|liste|bereich)[\w-]* commentaires? liste-commentaires comentarios? comentários? commenti
    reacties komentarze komentarer kommentarer yorumlar remark42 isso-thread giscus utterances cusdis_thread
    commento hyvor-talk[\w-]* graphcomment vuukle-comments spot-?im[\w-]* vf-comments coral_thread coral-talk[\w-]*
    hypercomments_widget vk_comments waline twikoo gitalk valine https?://schema\.org/(?:user)?comments?
    """
)


_PARTS = tuple(
    (part, re2.compile(rf"[\s\0]({names})[\s\0]"))
    for part, names in ((Part.MANAGER, _MANAGERS), (Part.CONSENT, _CONSENT), (Part.COMMENTS, _COMMENTS))
)


def prune(elements: Sequence[Any], page_size: int) -> bool:
    """Take the containers out of a tree, of which these are the elements in document order; tells if there were any.

    `page_size`: bytes of the page's visible text, as `filters.structure.page_lines.size_of` counts them.
    """
    left = dict.fromkeys((Part.CONSENT, Part.COMMENTS), MOST_SHARE * page_size)
    taken: dict[Part, list[Any]] = {part: [] for part in Part}
    inside, silent = set[Any](), set[Any]()  # the elements in those that were looked at: taken, and asking for nothing
    for place, part in sorted(_named(elements).items()):
        element = elements[place]
        if element in inside or element.tag in _WHOLE or next(element.iter(_OF_PAGE), None) is not None:
            continue
        if part in left:
            if part is Part.CONSENT and element in silent:
                continue
            seen = visible_text(element)
            if part is Part.CONSENT and not asks_for_consent(seen.decode().lower()):
                silent.update(element.iter())
                continue
            if not (size := size_of(seen)):
                continue
            left[part] -= size
        inside.update(element.iter())
        taken[part].append(element)
    unwanted = [element for part, those in taken.items() if left.get(part, 0) >= 0 for element in those]
    for element in unwanted:
        element.drop_tree()
    return bool(unwanted)


def _named(elements: Sequence[Any]) -> dict[int, Part]:
    """The places of the elements that a name tells as a container."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    dialogs = []
    for place, element in enumerate(elements):
        if element.tag in _DIALOGS:
            dialogs.append(place)
        for name, value in element.items():
            if name in _NAMING:
                places[value].append(place)
    named: defaultdict[str, list[int]] = defaultdict(list)
    for value, those in places.items():
        named[f"\0{value[:_NAME_CHARS].lower()}\0"] += those
    names = "".join(named)  # one search for all is much faster than one for each
    found: dict[int, Part] = {}
    for part, pattern in _PARTS:
        for match in pattern.finditer(names):
            start, end = names.rfind("\0", 0, match.start(1)), names.find("\0", match.end(1))
            for place in named[names[start : end + 1]]:
                found.setdefault(place, part)
    return dict.fromkeys(dialogs, Part.CONSENT) | found
