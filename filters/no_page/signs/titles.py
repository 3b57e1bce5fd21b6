"""Words of titles and headings, by reason: expressions that match a whole segment of them, in many languages."""

from __future__ import annotations

TITLES = {
    "challenge": r"""
just a moment ; please wait ; checking your browser(?: before accessing.*)? ; verifying your (?:browser|connection) ;
verify(?:ing)?(?: that)? you(?:'re| are) (?:a )?(?:not a (?:ro)?bot|human) ; are you (?:a )?(?:human|(?:ro)?bot) ;
robot or human ; robot check ; human verification ; (?:vercel )?security (?:check|checkpoint|verification) ; pardon
our interruption ; client challenge ; making sure you(?:'re| are) not a bot ; ddos-guard ; access to this page has
been denied ; you are being redirected ; challenge validation ; human test ; (?:nur )?einen moment(?:,? bitte)? ;
sicherheits(?:überprüfung|prüfung|abfrage|check) ; sind sie ein (?:mensch|roboter) ; (?:un |juste un )instant ;
(?:vérification|contrôle) (?:de sécurité|du navigateur|de votre navigateur|en cours) ; (?:solo )?un momento(?:,? por
favor)? ; (?:verificación|comprobación) (?:de seguridad|del navegador|humana) ; comprobando (?:tu|su) navegador ;
(?:só )?um momento ; verificação (?:de segurança|do navegador|humana) ; un attimo(?: di pazienza)? ; (?:verifica|
controllo) (?:di sicurezza|del browser) ; een (?:ogenblik|moment)(?: geduld)? ; (?:chwileczkę|proszę czekać) ;
(?:weryfikacja|kontrola) (?:bezpieczeństwa|przeglądarki) ; (?:пожалуйста,? )?подождите ; проверка (?:браузера|
безопасности|вашего браузера|подключения)(?: перед .{1,60})? ; (?:ой,? )?(?:капча|проверка) ; bir dakika(?: lütfen)? ;
güvenlik (?:kontrolü|doğrulaması) ; (?:しばらく|少々)?お待ちください ; (?:セキュリティ|ブラウザ) ?(?:の)?(?:チェック|
確認|検証) ; アクセス確認 ; 请(?:稍候|稍等|等待) ; (?:安全|人机|浏览器|访问)(?:检查|验证|校验) ; 滑动验证(?:页面)? ;
잠시만 기다(?:리십시오|려 ?주세요) ; 보안 (?:확인|검사) ; لحظة(?: واحدة)?(?: من فضلك)?
""",
    "blocked": r"""
access (?:is |was |has been )?(?:denied|forbidden|blocked|restricted) ; forbidden ; (?:request|ip|traffic|access)
(?:was |has been )?(?:blocked|rejected) ; (?:sorry,? )?you have been blocked ; blocked ; too many requests ; rate
limit(?:ed| exceeded)? ; (?:451:? )?unavailable (?:for|due to) legal reasons ; sucuri website firewall(?: access
denied)? ; (?:this )?(?:content|site|page|service|website) (?:is )?(?:not available|unavailable) in your (?:country|
region|location|area) ; the request could not be satisfied ; request rejected ; your ip (?:address )?(?:has been|is)
(?:blocked|banned) ; your access to this site has been limited ; zugriff (?:wurde )?(?:verweigert|blockiert|gesperrt|
nicht erlaubt) ; accès (?:refusé|interdit|bloqué|restreint) ; acceso (?:denegado|prohibido|bloqueado|restringido) ;
acesso (?:negado|proibido|bloqueado|restrito) ; accesso (?:negato|vietato|bloccato) ; toegang (?:geweigerd|
geblokkeerd|verboden) ; dostęp (?:zabroniony|zablokowany|odmówiony) ; доступ (?:к [а-яё ]{1,30} )?(?:запрещ[её]н|
ограничен|заблокирован|закрыт) ; アクセス(?:が)?(?:拒否|禁止|制限)(?:されました|されています)? ; (?:访问|存取|
请求)(?:被)?(?:拒绝|禁止|受限|拦截|阻断) ; (?:您的)?访问(?:请求)?(?:被|已被)(?:拒绝|禁止|拦截|阻断) ; (?:تم )?(?:رفض|
حظر|منع) (?:الوصول|الدخول) ; الوصول (?:مرفوض|محظور|ممنوع)
""",
    "login_wall": r"""
(?:please )?(?:log|sign)[- ]?in(?: or (?:register|sign ?up|create an account))?(?: (?:to|with|required|page|form|
first|now|here|into)(?: .{1,40})?)? ; (?:user |member |members |customer |client |account |admin )?log ?[io]n(?:
page| required| form)? ; members? (?:only|area) ; sign in to .{1,40} ; log in to .{1,40} ; private (?:site|blog|page)
; (?:password )?protected(?: page| site)? ; (?:bitte )?(?:anmelden|einloggen)(?: .{1,30})? ; (?:se )?connexion(?:
requise)? ; (?:connectez-vous|identifiez-vous)(?: .{1,40})? ; (?:iniciar|inicia|inicie) sesión(?: .{1,30})? ; entrar ;
acesse sua conta ; acced[ia](?: .{1,30})? ; inloggen(?: .{1,30})? ; log in bij .{1,30} ; aanmelden ; (?:zaloguj się|
logowanie)(?: .{1,30})? ; (?:вход|войти|войдите|авторизация|авторизуйтесь)(?: (?:в|на|для|с)(?: .{1,40})?)? ; giriş(?:
yap(?:ın)?)? ; oturum aç(?:ın)? ; ログイン(?:画面|ページ|が必要です|してください)? ; (?:用户|用戶|会员|會員|请先?|
請先?)?(?:登录|登錄|登入)(?:页面|后.*)? ; 로그인(?:이 필요합니다| 페이지)? ; تسجيل (?:الدخول|دخول)(?: .{1,30})?
""",
    "consent_wall": r"""
before you continue(?: to .{1,40})? ; (?:we value|we respect|we care about) your privacy ; age (?:verification|gate|
check|restriction|restricted)(?: required)? ; are you (?:over|at least|of legal|older than|18|21).{0,40} ; content
warning ; (?:is an )?adult (?:content|site|website)(?: warning)? ; yahoo is part of.* ; bevor sie (?:zu .{1,40}
)?(?:weitergehen|fortfahren|weiterlesen) ; zustimmung(?: erforderlich)? ; altersprüfung ; (?:bist du|sind sie)
(?:schon |mindestens |über )?18.{0,30} ; .{1,30} mit werbung (?:lesen|nutzen|weiterlesen).{0,40} ; mit werbung
weiterlesen.* ; avant (?:de continuer|d'accéder à .{1,40}) ; (?:le )?respect de votre vie privée(?: est notre
priorité)? ; votre vie privée ; vérification de (?:l'|votre )?âge ; avez-vous (?:plus de )?18 ans ; antes de
(?:continuar|ir a .{1,40}) ; (?:tu|su) privacidad(?: es importante.{0,20})? ; verificación de (?:la )?edad ;
¿?(?:eres|es usted) mayor de (?:edad|18(?: años)?) ; (?:verificação|confirmação) de idade ; (?:a )?sua privacidade ;
você tem (?:mais de )?18 anos ; prima di (?:continuare|proseguire) ; (?:la )?(?:tua|vostra) privacy ; voordat (?:je|u)
(?:verdergaat|verder gaat|doorgaat)(?: naar .{1,40})? ; zanim przejdziesz (?:dalej|do .{1,40}) ; (?:twoja|twojej|
szanujemy twoją|dbamy o twoją) prywatnoś\pL{1,3}.{0,30} ; прежде чем продолжить ; (?:подтверждение|проверка|
подтвердите) (?:ваш )?возраста? ; devam etmeden önce ; çerez (?:ayarları|onayı|tercihleri) ; (?:続行|
ご利用)(?:する)?前に ; (?:cookie|クッキー)の(?:同意|設定|使用) ; 年齢(?:確認|認証) ; (?:あなたは)?(?:18|
20)歳以上.{0,15} ; (?:隐私|隱私|cookie)(?:设置|同意|偏好|設定|声明) ; 继续(?:访问)?之?前 ; 年(?:龄|齡)(?:验证|确认|
驗證|確認) ; (?:您|你)(?:是否)?(?:已)?(?:年满|年滿)?18.{0,10} ; قبل (?:المتابعة|الانتقال إلى .{1,40})
""",
    "parked": r"""
(?:the |this )?(?:domain(?: name)?(?: [\w.-]{1,60}\.[a-z]{2,18})?|[\w.-]{1,60}\.[a-z]{2,18}(?: domain)?) (?:is|may be|
could be) (?:for sale|available for (?:sale|purchase)|parked(?: .{1,40})?) ; (?:premium )?domain(?: name)? (?:for
sale|is for sale|parked|parking|expired|available|has expired) ; (?:this )?domain (?:name )?(?:has )?expired ;
[\w-]{1,60}(?:\.[\w-]{1,30}){1,3}(?: (?:is )?for sale| domain name is for sale.*|: (?:domain )?for sale) ; domain
parking ; (?:diese |die )?domain(?: [\w.-]{3,80})? (?:ist |steht |kann )?(?:zu verkaufen|zum verkauf|zu kaufen|
verfügbar|käuflich|geparkt|gekauft werden|noch nicht eingerichtet) ; domain (?:zu verkaufen|zum verkauf|geparkt|
registriert) ; (?:ce |le )?(?:nom de )?domaine(?: [\w.-]{3,80})? (?:est )?(?:à vendre|en vente|expiré|parqué|réservé|
déposé) ; (?:el |este )?dominio(?: [\w.-]{3,80})? (?:está )?(?:en venta|a la venta|caducado|expirado|aparcado|
reservado|estacionado) ; (?:o |este )?domínio(?: [\w.-]{3,80})? (?:está )?(?:à venda|expirado|estacionado|reservado) ;
(?:il |questo )?dominio(?: [\w.-]{3,80})? (?:è )?(?:in vendita|scaduto|parcheggiato|registrato) ; (?:het |deze
)?domein(?:naam)?(?: [\w.-]{3,80})? (?:is )?(?:te koop|verlopen|geparkeerd|geregistreerd|gereserveerd) ; (?:ta |tę
)?domen[aęy](?: [\w.-]{3,80})? (?:jest )?(?:na sprzedaż|do kupienia|zaparkowana|wygasła|zarejestrowana) ; (?:этот
)?домен(?: [\w.-]{3,80})? (?:прода[её]тся|на продаже|выставлен на продажу|припаркован|зарегистрирован|истек|не
прилинкован.*) ; (?:この)?(?:ドメイン|ドメイン名)(?:は|が)?(?:販売中|売出し中|売り出し中|期限切れ|お名前\.com).{0,20}
; (?:该|本|此)?域名(?:正在)?(?:出售|待售|转让|可出售|已过期|停放).{0,10} ; 域名(?:出售|停放|转让)(?:中)? ; (?:هذا
)?(?:النطاق|الدومين|اسم النطاق)(?: .{0,40})? (?:للبيع|معروض للبيع|محجوز)
""",
    "maintenance": r"""
(?:(?:site|website|server|system|scheduled|planned|temporary|under|undergoing|down for|closed for|we're|we are)
)+maintenance(?: mode| break| in progress| page| underway| work)? ; maintenance (?:mode|break|in progress|page|
underway|work) ; (?:website |site |page )?(?:is )?(?:currently )?under[- ]construction ; (?:website |site |launching |
something (?:awesome |great |new )?(?:is )?)?coming (?:very )?soon ; (?:we(?:'ll| will) be )?(?:right |be )?back
(?:soon|shortly|online soon) ; we(?:'ll| will) be (?:right )?back(?: soon| shortly| later)? ; opening soon ; (?:this
)?(?:account|site|website|hosting account|web ?site|service) (?:is |has been |temporarily )*(?:suspended|disabled|
offline|closed) ; (?:error )?establishing a database connection ; database (?:connection )?error ; bad gateway ;
service (?:temporarily )?unavailable ; be right back ; wartungs(?:arbeiten|modus|pause|seite) ; (?:die |diese |unsere
)?(?:website|webseite|seite|homepage|internetseite) (?:ist |wird |befindet sich )?(?:gerade |zur ?zeit |derzeit |
momentan )?(?:im aufbau|in bearbeitung|gewartet|in wartung|nicht erreichbar|überarbeitet|gesperrt) ; im aufbau ;
(?:site|le site|notre site)(?: web)? (?:est )?(?:actuellement )?en (?:cours de )?(?:maintenance|construction|travaux)
; (?:sitio|página|web|sitio web)?(?: web)? ?(?:está )?en (?:construcción|mantenimiento|obras) ; en mantenimiento(?:
programado)? ; próximamente ; (?:site )?em (?:construção|manutenção|breve) ; (?:site |página )?(?:temporariamente
)?(?:em manutenção|indisponível) ; (?:sito )?in (?:manutenzione|costruzione|allestimento) ; sito (?:in costruzione|
sospeso|non disponibile|in manutenzione|web in costruzione) ; (?:strona |serwis )?w (?:budowie|przebudowie|trakcie
(?:budowy|konserwacji|prac)) ; (?:przerwa|prace) (?:techniczn[ae]|serwisow[ae]|konserwacyjn[ae]) ; strona
(?:zawieszona|tymczasowo niedostępna|w budowie) ; (?:сайт |страница |портал )?(?:находится )?(?:на|в)
(?:реконструкции|разработке|обслуживании|ремонте|техобслуживании) ; (?:ведутся |идут |проводятся )?(?:технические|
профилактические|плановые|регламентные|техн\.) работы(?: на сайте)? ; (?:(?:web )?site(?:miz)? )?(?:bakımda|bakım
(?:modu|çalışması)|yapım aşamasında(?:dır)?) ; (?:ただいま|現在)?(?:、)?(?:システム|サーバー?|
サイト)?(?:の)?メンテナンス(?:中(?:です)?|のお知らせ) ; (?:準備|工事|作成|建設)中(?:です)? ; (?:网站|系统|网页|
站点)?(?:正在(?:维护|建设|升级)|(?:维护|建设|升级|升级维护|维护升级)中) ; (?:사이트|시스템|서버)? ?(?:점검|공사|준비)
?중(?:입니다)? ; (?:الموقع )?(?:تحت|قيد|في وضع) (?:الصيانة|الإنشاء|التطوير)
""",
    "default_page": r"""
welcome to (?:nginx|openresty|tengine|caddy|centos|apache|apache tomcat|iis|jetty|lighttpd|openlitespeed|plesk|xampp|
your new .{1,30}|the .{0,30} test page|cpanel|rocky linux|almalinux|our server)(?: \d+)?(?: on .{1,30})? ; apache2?
(?:ubuntu|debian|centos|http server|fedora|linux)(?: \w+)? (?:default|test) page(?: it works| powered by .{1,30})? ;
test page for the .{1,60} ; it works ; iis ?\d+(?:\.\d)? ; iis windows(?: server)? ; microsoft internet information
services \d.* ; apache tomcat/[\d.]+ ; (?:web server's |web server |domain |server )default (?:page|web ?page|web site
page) ; index of /.{0,200} ; directory listing (?:for|of) /.{0,200} ; [\w.-]{1,60} - /(?:.{0,100}/)? ; success! your
new (?:web )?server is ready.* ; (?:恭喜,? ?)?(?:站点|网站)创建成功 ; 没有找到站点 ; (?:домен|сайт) успешно (?:создан|
привязан|добавлен|настроен)(?: .{1,30})? ; future home of something (?:quite )?cool ; placeholder page
""",
    "soft_404": r"""
(?:error )?(?:404|410)(?: error| page| gone| html)? ; (?:the )?(?:requested )?(?:page|file|url|content|document|
article|post|resource|product|item|listing|video|profile|topic|thread|job|entry) (?:(?:was |is |could |can ?)?not
(?:be )?(?:found|available)|(?:can't|couldn't) be found|(?:has been |was |is )(?:removed|deleted|missing|gone)|(?:does
not|doesn't) exist|(?:is )?(?:no longer (?:available|exists?|active)|unavailable))(?: here)? ; not found ; nothing
(?:found|here|to see here) ; (?:we )?(?:can't|cannot|couldn't|can not|could not) (?:seem to )?find (?:that|the|this)
(?:page|content|article|url)?.{0,40} ; page (?:isn't|is not) available ; (?:this )?(?:page|content|link) (?:isn't|is
not|is no longer) (?:available|here)(?: right now)? ; (?:die |diese |ihre )?(?:angeforderte |gesuchte |gewünschte |
aufgerufene )?(?:seite|datei|artikel|inhalt|url|dokument|beitrag|produkt) (?:(?:wurde |konnte |ist )?(?:leider )?nicht
(?:mehr )?(?:gefunden(?: werden)?|vorhanden|verfügbar)|existiert (?:leider )?nicht(?: mehr)?|wurde gelöscht) ; (?:la |
cette |votre )?(?:page|fichier|article|contenu|ressource|url)(?: que vous .{1,30}| demandée?)? (?:(?:est
)?(?:introuvable|inexistante)|non[ -]trouvée?|n'(?:a|est) pas (?:été )?(?:trouvée?|disponible)|n'existe (?:pas|
plus)(?: ou plus)?|n'est plus (?:disponible|en ligne)) ; (?:la |esta )?(?:página|pagina|url|artículo|contenido|
archivo)(?: (?:que (?:buscas?|has solicitado)|solicitad[ao]|web))? (?:(?:ya )?no (?:(?:se ha |ha sido |fue |está
)?(?:encontrad[ao]|disponible)|existe|se encuentra|se pudo encontrar)|ha sido eliminad[ao]) ; (?:a |esta )?(?:página|
pagina|conteúdo|arquivo)(?: (?:que procura|solicitada))? (?:não (?:(?:foi |está )?(?:encontrad[ao]|disponível|
localizada)|existe)|foi removid[ao]) ; (?:la |questa )?pagina(?: richiesta| cercata| web)? (?:non (?:è )?(?:stata
)?(?:trovata|esiste|disponibile|presente)|inesistente)(?: più)? ; non trovat[ao] ; (?:de |deze )?pagina (?:(?:is |kan
|werd )?(?:helaas )?niet (?:meer )?(?:gevonden|beschikbaar)(?: worden)?|bestaat (?:helaas )?niet(?: meer)?) ; nie
znaleziono(?: strony| takiej strony)? ; nie ma takiej strony ; (?:такой |эта |запрашиваемая |данная |запрошенная
)?(?:страниц[аы]|файл|материал|статья|документ|новость|товар) (?:(?:больше |по данному адресу )?не (?:найден[ао]?|
существует|доступна)|(?:была )?удал[её]на?|отсутствует) ; такой страницы (?:не существует|нет) ; (?:сторінк[аи]|
сторінку) (?:не |не було )?(?:знайдено|існує) ; (?:aradığınız )?sayfa (?:bulunamadı|mevcut değil|yok) ; sidan
(?:hittades inte|kunde inte hittas|finns inte) ; (?:お探しの|指定された|ご指定の|該当の|該当する)?(?:ページ|ファイル|
url|記事|コンテンツ|商品)(?:は|が|を)?(?:現在)?(?:見つかりません(?:でした)?|存在しません|見つけられません(?:でした)?|
ありません(?:でした)?|表示できません|削除されました) ; (?:您|你)?(?:访问|请求|要找|查找|浏览|所?請求|要查看|
訪問)?的?(?:页面|网页|文章|内容|頁面|網頁|文件|地址)(?:不存在|未找到|找不到(?:了)?|已(?:被)?(?:删除|刪除)|走丢了|
不见了|没有找到|丢失了|無法顯示)(?:或已.{1,8})? ; (?:요청하신 |찾으시는 |해당 )?페이지(?:를|가)? (?:찾을 수 없습니다|
존재하지 않습니다|없습니다) ; (?:الصفحة|الصفحه|المقال)(?: (?:التي تبحث عنها|المطلوبة))? (?:غير موجودة?|غير متوفرة|لم
يتم العثور عليها|لا توجد|محذوفة)
""",
}
