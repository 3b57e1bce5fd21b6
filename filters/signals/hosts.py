"""Hosts and paths of the services that pages use, by kind and name; a table of our own, from the services' manuals.

A host stands for its subdomains too; the longest entry of an address wins, host first, then path. The name `-` is
nothing: an address of such a service that says something else, such as the advertiser's side of an ad network.
"""

from __future__ import annotations

from collections.abc import Mapping

from stream.schema.signals import SignalKind

_ADS = {
    "adsense": "googlesyndication.com/pagead googlesyndication.com/safeframe",
    "gam": "securepubads.g.doubleclick.net pubads.g.doubleclick.net googletagservices.com partner.googleadservices.com"
    " ad.doubleclick.net/adj ad.doubleclick.net/adi ad.doubleclick.net/ad/ ad.doubleclick.net/n",
    "amazon": "aax.amazon-adsystem.com c.amazon-adsystem.com",
    "ezoic": "ezoic.net ezoic.com ezojs.com ezodn.com ezoiccdn.com",
    "mediavine": "mediavine.com",
    "raptive": "adthrive.com raptive.com",
    "taboola": "taboola.com",
    "outbrain": "widgets.outbrain.com odb.outbrain.com outbrainimg.com",
    "revcontent": "revcontent.com",
    "mgid": "jsc.mgid.com jsc.adskeeper.com jsc.adskeeper.co.uk",
    "content.ad": "content.ad",
    "zergnet": "zergnet.com",
    "dianomi": "dianomi.com",
    "plista": "plista.com",
    "ligatus": "ligatus.com",
    "nativo": "ntv.io postrelease.com",
    "sharethrough": "sharethrough.com",
    "triplelift": "3lift.com",
    "teads": "a.teads.tv",
    "xandr": "acdn.adnxs.com ib.adnxs.com/ttj ib.adnxs.com/jpt ib.adnxs.com/ptj",
    "rubicon": "rubiconproject.com",
    "pubmatic": "pubmatic.com",
    "openx": "openx.net",
    "index": "casalemedia.com indexww.com",
    "criteo": "static.criteo.net/js/ld/publishertag cas.criteo.com",
    "sovrn": "lijit.com",
    "media.net": "media.net",
    "infolinks": "infolinks.com",
    "propeller": "propellerads.com onclickads.net onclkds.com propu.sh",
    "popads": "popads.net popcash.net",
    "adsterra": "adsterra.com highperformanceformat.com profitablecpmratenetwork.com effectivegatecpm.com"
    " profitabledisplaynetwork.com highcpmgate.com topcreativeformat.com",
    "exoclick": "exoclick.com exosrv.com exdynsrv.com magsrv.com",
    "juicyads": "juicyads.com",
    "a-ads": "a-ads.com",
    "coinzilla": "coinzillatag.com coinzilla.io",
    "bidvertiser": "bidvertiser.com",
    "chitika": "chitika.net",
    "yllix": "yllix.com",
    "revenuehits": "revenuehits.com",
    "adcash": "adcash.com",
    "buysellads": "buysellads.com buysellads.net servedby-buysellads.com",
    "carbon": "carbonads.com carbonads.net",
    "ethicalads": "ethicalads.io",
    "monumetric": "monu.delivery monumetric.com",
    "freestar": "pub.network freestar.com freestar.io",
    "playwire": "intergient.com playwire.com intergi.com",
    "venatus": "vntsm.com",
    "snigel": "snigelweb.com",
    "shemedia": "blogherads.com shemedia.com",
    "setupad": "stpd.cloud setupad.net",
    "adpushup": "adpushup.com",
    "htlbid": "htlbid.com",
    "primis": "primis.tech",
    "connatix": "connatix.com",
    "vdo.ai": "vdo.ai",
    "spotx": "spotxchange.com",
    "yieldlove": "yieldlove.com yieldlove-ad-serving.net",
    "yieldlab": "yieldlab.net",
    "adscale": "adscale.de",
    "stroeer": "stroeerdigital.de stroeerdigitalgroup.de",
    "adition": "adition.com",
    "adform": "adx.adform.net",
    "equativ": "smartadserver.com sascdn.com",
    "improve": "360yield.com",
    "yandex": "an.yandex.ru yandex.ru/ads adfox.ru",
    "mail.ru": "ad.mail.ru",
    "kargo": "kargo.com",
    "gumgum": "gumgum.com",
    "undertone": "undertone.com",
    "yieldmo": "yieldmo.com",
    "sonobi": "sonobi.com",
    "33across": "33across.com",
    "epsilon": "fastclick.net",
    "tribalfusion": "tribalfusion.com",
    "burst": "burstnet.com",
    "zedo": "zedo.com",
    "adbrite": "adbrite.com",
    "federated": "fmpub.net technoratimedia.com",
    "adtech": "adtech.de adtechus.com at.atwola.com",
    "wordads": "pubmine.com",
    "kontera": "kontera.com",
    "vibrant": "intellitxt.com",
    "adblade": "adblade.com",
    "revive": "revive-adserver.net",
    "yahoo": "ads.yahoo.com ad.yieldmanager.com",
    "microsoft": "adsyndication.msn.com",
    "overture": "ypn-js.overture.com",
    "adsonar": "adsonar.com",
    "blogads": "blogads.com",
    "realmedia": "247realmedia.com/realmedia/ads",
    "-": "cdn.taboola.com/libtrc/unip trc.taboola.com/actions ad.yieldmanager.com/pixel"
    " googlesyndication.com/pagead/js/google_top_exp",
}
_AFFILIATE = {
    "amazon": "amzn.to z-na.amazon-adsystem.com ws-na.amazon-adsystem.com ws-eu.amazon-adsystem.com"
    " ws-in.amazon-adsystem.com rcm-na.amazon-adsystem.com rcm-eu.amazon-adsystem.com ir-na.amazon-adsystem.com"
    " ir-de.amazon-adsystem.com ir-uk.amazon-adsystem.com rcm.amazon.com rcm-uk.amazon.co.uk assoc-amazon.com"
    " assoc-amazon.co.uk assoc-amazon.de",
    "awin": "awin1.com zenaps.com",
    "cj": "anrdoezrs.net dpbolvw.net jdoqocy.com kqzyfj.com tkqlhce.com qksrv.net ftjcfx.com lduhtrp.net tqlkg.com"
    " awltovhc.com yceml.net afcyhf.com",
    "impact": "sjv.io pxf.io evyy.net ojrq.net 7eer.net",
    "pepperjam": "pntra.com pntrac.com pntrs.com pjtra.com pjatr.com gopjn.com",
    "shareasale": "shareasale.com/r.cfm shareasale.com/u.cfm shareasale.com/m-pr shrsl.com shareasale-analytics.com",
    "skimlinks": "skimresources.com redirectingat.com",
    "viglink": "viglink.com sovrn.co",
    "clickbank": "hop.clickbank.net",
    "rakuten": "linksynergy.com",
    "ebay": "rover.ebay.com",
    "flexoffers": "flexlinkspro.com flexlinks.com",
    "partnerize": "prf.hn",
    "tradedoubler": "clk.tradedoubler.com clkde.tradedoubler.com clkuk.tradedoubler.com pdt.tradedoubler.com",
    "webgains": "track.webgains.com",
    "affilinet": "webmasterplan.com",
    "belboon": "belboon.de belboon.com",
    "zanox": "ad.zanox.com zanox-affiliate.de",
    "tradetracker": "tc.tradetracker.net ti.tradetracker.net",
    "daisycon": "ds1.nl lt45.net jdt8.net",
    "admitad": "ad.admitad.com alitems.com",
    "effiliation": "track.effiliation.com",
    "kwanko": "action.metaffiliation.com",
    "adtraction": "track.adtraction.com",
    "partner-ads": "partner-ads.com",
    "avantlink": "avantlink.com/click.php",
    "linkconnector": "linkconnector.com/ta.php",
    "commissionfactory": "t.cfjump.com",
    "digidip": "digidip.net",
    "narrativ": "shop-links.co howl.me",
    "ltk": "rstyle.me liketk.it shopltk.com",
    "shopstyle": "shopstyle.it",
    "magiclinks": "magik.ly",
    "bookshop": "bookshop.org/a",
    "travelpayouts": "tp.media tp.st travelpayouts.com emrldtp.com",
    "stay22": "stay22.com",
    "jvzoo": "jvz1.com jvz2.com jvz3.com jvz4.com jvz5.com jvz6.com jvz7.com jvz8.com",
    "warriorplus": "warriorplus.com/o2/a",
    "digistore24": "digistore24.com/redir",
    "hotmart": "go.hotmart.com",
    "geniuslink": "geni.us georiot.com",
    "lasso": "lasso.link",
    "tracdelight": "tracdelight.io tracdelight.com",
    "bluehost": "bluehost.com/track",
    "hostgator": "partners.hostgator.com",
    "hasoffers": "go2cloud.org go2jump.org",
}
TAGGED = {
    "amazon": "amazon.com amazon.co.uk amazon.de amazon.ca amazon.fr amazon.it amazon.es amazon.in amazon.com.au"
    " amazon.co.jp amazon.com.br amazon.com.mx amazon.nl amazon.pl amazon.se",
    "ebay": "ebay.com ebay.co.uk ebay.de ebay.com.au ebay.ca ebay.fr ebay.it",
    "booking": "booking.com",
    "getyourguide": "getyourguide.com",
    "apple": "itunes.apple.com geo.itunes.apple.com books.apple.com apps.apple.com",
    "siteground": "siteground.com",
}
"""Shops whose links pay only with the tag of a publisher."""
LOADED = frozenset(
    [
        *("amazon", "skimlinks", "viglink", "digidip", "narrativ", "stay22", "travelpayouts", "geniuslink", "ltk"),
        "tracdelight",
    ]
)
"""Affiliate services whose scripts a publisher loads; of the others a shop loads the pixels that count its sales."""
_ANALYTICS = {
    "google": "google-analytics.com googletagmanager.com/gtag",
    "gtm": "googletagmanager.com/gtm.js googletagmanager.com/ns.html",
    "facebook": "connect.facebook.net/en_us/fbevents.js",
    "clarity": "clarity.ms",
    "hotjar": "static.hotjar.com",
    "cloudflare": "static.cloudflareinsights.com",
    "jetpack": "stats.wp.com",
    "yandex": "mc.yandex.ru mc.yandex.com",
    "comscore": "scorecardresearch.com",
    "quantcast": "quantserve.com quantcount.com",
    "chartbeat": "chartbeat.com",
    "parsely": "parsely.com",
    "segment": "cdn.segment.com",
    "mixpanel": "cdn.mxpnl.com",
    "amplitude": "cdn.amplitude.com",
    "heap": "cdn.heapanalytics.com heapanalytics.com",
    "statcounter": "statcounter.com",
    "histats": "histats.com",
    "matomo": "cdn.matomo.cloud matomo.cloud",
    "plausible": "plausible.io",
    "fathom": "cdn.usefathom.com",
    "simple": "scripts.simpleanalyticscdn.com",
    "umami": "cloud.umami.is",
    "gemius": "gemius.pl",
    "ivw": "ioam.de iocnt.net",
    "adobe": "omtrdc.net assets.adobedtm.com 2o7.net",
    "optimizely": "cdn.optimizely.com",
    "hubspot": "js.hs-analytics.net js.hs-scripts.com",
    "newrelic": "js-agent.newrelic.com",
    "liveinternet": "counter.yadro.ru",
    "baidu": "hm.baidu.com",
}
_CMS = {
    "shopify": "cdn.shopify.com shopifycloud.com",
    "wix": "wixstatic.com parastorage.com",
    "squarespace": "squarespace.com squarespace-cdn.com",
    "blogger": "blogger.com/static blogger.com/dyn-css",
    "wordpress.com": "s0.wp.com s1.wp.com s2.wp.com",
    "weebly": "editmysite.com",
    "webflow": "website-files.com",
    "medium": "cdn-client.medium.com",
    "substack": "substackcdn.com",
    "tumblr": "assets.tumblr.com",
    "bigcommerce": "bigcommerce.com",
    "godaddy": "wsimg.com",
    "duda": "cdn-website.com dudaone.com",
    "typepad": "static.typepad.com",
    "jimdo": "jimdo.com jimstatic.com",
    "strikingly": "strikinglycdn.com",
    "hubspot": "hsappstatic.net",
    "gitbook": "gitbook.io gitbook.com",
    "readthedocs": "assets.readthedocs.org",
}
_KINDS = {
    SignalKind.ADS: _ADS,
    SignalKind.AFFILIATE: _AFFILIATE,
    SignalKind.ANALYTICS: _ANALYTICS,
    SignalKind.CMS: _CMS,
}


def _table() -> Mapping[str, list[tuple[str, str]]]:
    """Host -> path and signal of its entries, the longest path first; the signal "" is nothing."""
    table: dict[str, list[tuple[str, str]]] = {}
    for kind, names in _KINDS.items():
        for name, addresses in names.items():
            for address in addresses.split():
                host, slash, path = address.partition("/")
                table.setdefault(host, []).append((slash + path, "" if name == "-" else f"{kind}:{name}"))
    for name, hosts in TAGGED.items():
        for host in hosts.split():
            table.setdefault(host, []).append(("", f"{SignalKind.AFFILIATE}:{name}:"))
    return {host: sorted(entries, key=lambda entry: -len(entry[0])) for host, entries in table.items()}


HOSTS = _table()
"""Host -> (path, signal), the longest path first. A signal that ends in `:` counts only with an id."""
