"""What the pages that are no page are known by, as data.

`titles` and `texts` hold regular expressions for lower-case text, `marks` plain strings. They are separated by " ;".
Each is shown by an answer of the tests.

Marks come from the products' own pages, as public detectors list them too: wafw00f and FlareSolverr (challenges), the
82 parking services of "Domain Parking: Largely Present, Rarely Considered!" (TMA 2022), and the default pages of nginx,
httpd, Tomcat, IIS, cPanel and Plesk. What the same vendors put into ordinary pages is no mark: Cloudflare's
`challenge-platform` script, the widgets of Turnstile, reCAPTCHA and hCaptcha, `_Incapsula_Resource` without a frame.
"""
