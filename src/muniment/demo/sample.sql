-- The tree register of Ulmenhafen, a harbour city that does not exist.
--
-- What is small stands here; trees, inspections, orders, photographs and reports are grown by
-- sample.py, the same ones each time.

CREATE TABLE district (
    code      CHAR(2) NOT NULL PRIMARY KEY,
    name      VARCHAR(40) NOT NULL UNIQUE,
    area_km2  DECIMAL(6,2) NOT NULL,
    twin_town VARCHAR(60),                      -- NULL: none; never empty
    CONSTRAINT area_is_positive CHECK (area_km2 > 0)
);

CREATE TABLE street (
    id            INTEGER PRIMARY KEY,
    name          VARCHAR(60) NOT NULL,
    district_code CHAR(2) NOT NULL,
    CONSTRAINT street_in_district FOREIGN KEY (district_code) REFERENCES district (code),
    CONSTRAINT street_once_per_district UNIQUE (name, district_code)
);

CREATE TABLE species (
    id           INTEGER PRIMARY KEY,
    latin_name   VARCHAR(80) NOT NULL,
    family       VARCHAR(40) NOT NULL,
    evergreen    BOOLEAN NOT NULL DEFAULT FALSE,
    max_height_m SMALLINT,
    CONSTRAINT latin_name_is_unique UNIQUE (latin_name)
);

CREATE TABLE species_name (
    species_id INTEGER NOT NULL,
    language   VARCHAR(3) NOT NULL,             -- ISO 639
    name       VARCHAR(80) NOT NULL,
    PRIMARY KEY (species_id, language),
    CONSTRAINT name_of_species FOREIGN KEY (species_id) REFERENCES species (id) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE tree (
    id              INTEGER PRIMARY KEY,
    register_number BIGINT NOT NULL,            -- beyond 2^53: no float may touch it
    species_id      INTEGER NOT NULL,
    street_id       INTEGER NOT NULL,
    house_number    VARCHAR(10),                -- NULL: not known; '': there is no house
    latitude        DOUBLE PRECISION NOT NULL,
    longitude       DOUBLE PRECISION NOT NULL,
    planted_on      DATE,                       -- NULL: older than the register
    felled_on       DATE,
    height_m        DECIMAL(4,1),
    girth_cm        SMALLINT,
    protected       BOOLEAN NOT NULL DEFAULT FALSE,
    note            VARCHAR(400),
    CONSTRAINT register_number_is_unique UNIQUE (register_number),
    CONSTRAINT tree_of_species FOREIGN KEY (species_id) REFERENCES species (id),
    CONSTRAINT tree_in_street FOREIGN KEY (street_id) REFERENCES street (id),
    CONSTRAINT felled_after_planting CHECK (felled_on IS NULL OR felled_on >= planted_on),
    CONSTRAINT girth_is_positive CHECK (girth_cm > 0)
);

CREATE TABLE seedling (
    tree_id    INTEGER PRIMARY KEY,
    grown_from INTEGER NOT NULL,
    CONSTRAINT seedling_is_a_tree FOREIGN KEY (tree_id) REFERENCES tree (id),
    CONSTRAINT seedling_of_a_tree FOREIGN KEY (grown_from) REFERENCES tree (id)
);

CREATE TABLE inspection (
    tree_id      INTEGER NOT NULL,
    inspected_at TIMESTAMP NOT NULL,
    vitality     SMALLINT NOT NULL,
    crown_loss   DOUBLE PRECISION,              -- share of the crown, 0 to 1
    remark       VARCHAR(200),
    PRIMARY KEY (tree_id, inspected_at),
    CONSTRAINT inspection_of_tree FOREIGN KEY (tree_id) REFERENCES tree (id),
    CONSTRAINT vitality_is_0_to_4 CHECK (vitality BETWEEN 0 AND 4)
);

CREATE TABLE work_order (
    id         INTEGER PRIMARY KEY,
    tree_id    INTEGER NOT NULL,
    kind       VARCHAR(20) NOT NULL,
    ordered_on DATE NOT NULL,
    done_on    DATE,
    starts_at  TIME,
    unit_price VARCHAR(12) NOT NULL,            -- exact as written: 1.10 is not 1.1
    CONSTRAINT order_for_tree FOREIGN KEY (tree_id) REFERENCES tree (id),
    CONSTRAINT kind_is_known CHECK (kind IN ('pruning', 'watering', 'felling', 'bracing'))
);

CREATE TABLE tree_event (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    tree_id     INTEGER NOT NULL REFERENCES tree (id),
    happened_on DATE NOT NULL,
    what        VARCHAR(80) NOT NULL
);

CREATE TABLE photo (
    id        INTEGER PRIMARY KEY,
    tree_id   INTEGER NOT NULL REFERENCES tree (id),
    taken_at  TIMESTAMP NOT NULL,
    mime_type VARCHAR(40) NOT NULL,
    image     BLOB                              -- NULL: lost; empty: the camera's fault
);

-- Who may fell or prune a protected tree, since the city council first wrote it down.
CREATE TABLE permit (
    id         INTEGER PRIMARY KEY,
    tree_id    INTEGER REFERENCES tree (id),    -- NULL: the tree is not known any more
    granted_on DATE NOT NULL,
    purpose    VARCHAR(60) NOT NULL,
    document   BLOB NOT NULL                    -- PDF
);

CREATE TABLE report (
    id           INTEGER PRIMARY KEY,
    title        VARCHAR(120) NOT NULL,
    published_on DATE NOT NULL,
    body         CLOB
);

-- Names with spaces, and words that SQL keeps for itself.
CREATE TABLE "guided walk" (
    "walk"  VARCHAR(40) NOT NULL,
    "order" INTEGER NOT NULL,
    tree_id INTEGER NOT NULL REFERENCES tree (id),
    "was es zu sehen gibt" VARCHAR(120),
    PRIMARY KEY ("walk", "order")
);

-- What the old card index holds, and every archive must keep exactly.
CREATE TABLE curiosity (
    id            INTEGER PRIMARY KEY,
    topic         VARCHAR(60) NOT NULL,
    text_value    VARCHAR(200),
    integer_value BIGINT,
    real_value    DOUBLE PRECISION
);

CREATE INDEX tree_by_street ON tree (street_id, house_number);

CREATE VIEW tree_overview AS
SELECT tree.register_number, species.latin_name, street.name AS street, district.name AS district,
       tree.planted_on, tree.height_m
FROM tree
JOIN species ON species.id = tree.species_id
JOIN street ON street.id = tree.street_id
JOIN district ON district.code = street.district_code
WHERE tree.felled_on IS NULL;

CREATE VIEW trees_per_district AS
SELECT district.code, district.name, count(tree.id) AS trees
FROM district
JOIN street ON street.district_code = district.code
JOIN tree ON tree.street_id = street.id
GROUP BY district.code, district.name;

CREATE TRIGGER work_is_done AFTER UPDATE OF done_on ON work_order
WHEN NEW.done_on IS NOT NULL AND OLD.done_on IS NULL
BEGIN
    INSERT INTO tree_event (tree_id, happened_on, what)
    VALUES (NEW.tree_id, NEW.done_on, NEW.kind || ' done, order ' || NEW.id);
END;

CREATE TRIGGER a_tree_is_never_deleted BEFORE DELETE ON tree
BEGIN
    SELECT RAISE(ABORT, 'a tree is never deleted; set felled_on');
END;

INSERT INTO district VALUES
    ('AL', 'Altstadt',      1.75, 'Γιάλοβα'),
    ('HA', 'Hafenviertel',  3.20, NULL),
    ('LI', 'Lindenhöhe',    4.05, 'Łąki Małe'),
    ('NO', 'Nordufer',      6.60, '桜川'),
    ('SU', 'Südwiesen',     5.10, NULL),
    ('ØS', 'Østbyen',       2.90, 'Ærøsund');

INSERT INTO street (id, name, district_code) VALUES
    (1, 'Marktplatz', 'AL'), (2, 'Lindenallee', 'AL'), (3, 'An der Stadtmauer', 'AL'),
    (4, 'Πλατεία Ελιάς', 'AL'), (5, 'Gasse „Zum Goldenen Ahorn“', 'AL'), (6, 'Uferweg', 'AL'),
    (7, 'Fisherman''s Walk', 'HA'), (8, 'Kai 7 / Speicher', 'HA'), (9, 'Quai aux Fleurs', 'HA'),
    (10, 'Rue de l''Orme', 'HA'), (11, 'Speicherstraße', 'HA'), (12, 'Leuchtturmweg', 'HA'),
    (13, 'Lindenallee', 'LI'), (14, 'ulica Klonowa', 'LI'), (15, 'Aleja Dębowa', 'LI'),
    (16, 'Waldstraße', 'LI'), (17, 'Höhenweg', 'LI'), (18, 'Am Wasserturm', 'LI'),
    (19, '桜通り', 'NO'), (20, 'Nordufer', 'NO'), (21, 'Birkenweg', 'NO'),
    (22, 'Каштановая аллея', 'NO'), (23, 'Ginkgoplatz', 'NO'), (24, 'Möwenstieg', 'NO'),
    (25, 'Wiesenstraße', 'SU'), (26, 'Apfelgarten', 'SU'), (27, 'Bachweg', 'SU'),
    (28, 'شارع الزيتون', 'SU'), (29, 'Weidendamm', 'SU'), (30, 'Feld & Flur', 'SU'),
    (31, 'Ålegade', 'ØS'), (32, 'Østre Allé', 'ØS'), (33, 'Bøgevej', 'ØS'),
    (34, 'Søndre Kaj', 'ØS'), (35, 'רחוב הדקל', 'ØS'), (36, 'Elmevænget', 'ØS');

INSERT INTO species (id, latin_name, family, evergreen, max_height_m) VALUES
    (1, 'Tilia cordata', 'Malvaceae', FALSE, 30),
    (2, 'Tilia tomentosa', 'Malvaceae', FALSE, 30),
    (3, 'Acer platanoides', 'Sapindaceae', FALSE, 25),
    (4, 'Acer pseudoplatanus', 'Sapindaceae', FALSE, 30),
    (5, 'Aesculus hippocastanum', 'Sapindaceae', FALSE, 30),
    (6, 'Platanus × hispanica', 'Platanaceae', FALSE, 35),
    (7, 'Quercus robur', 'Fagaceae', FALSE, 40),
    (8, 'Quercus cerris', 'Fagaceae', FALSE, 35),
    (9, 'Fraxinus excelsior', 'Oleaceae', FALSE, 40),
    (10, 'Ulmus minor', 'Ulmaceae', FALSE, 30),
    (11, 'Ulmus ''New Horizon''', 'Ulmaceae', FALSE, 25),
    (12, 'Betula pendula', 'Betulaceae', FALSE, 25),
    (13, 'Carpinus betulus', 'Betulaceae', FALSE, 20),
    (14, 'Fagus sylvatica', 'Fagaceae', FALSE, 40),
    (15, 'Ginkgo biloba', 'Ginkgoaceae', FALSE, 30),
    (16, 'Prunus × yedoensis', 'Rosaceae', FALSE, 12),
    (17, 'Prunus avium', 'Rosaceae', FALSE, 20),
    (18, 'Robinia pseudoacacia', 'Fabaceae', FALSE, 25),
    (19, 'Gleditsia triacanthos f. inermis', 'Fabaceae', FALSE, 20),
    (20, 'Liquidambar styraciflua', 'Altingiaceae', FALSE, 20),
    (21, 'Olea europaea', 'Oleaceae', TRUE, 10),
    (22, 'Pinus sylvestris', 'Pinaceae', TRUE, 35),
    (23, 'Taxus baccata', 'Taxaceae', TRUE, 15),
    (24, 'Metasequoia glyptostroboides', 'Cupressaceae', FALSE, 35),
    (25, 'Azadirachta indica', 'Meliaceae', TRUE, 20),
    (26, 'Phoenix dactylifera', 'Arecaceae', TRUE, NULL),
    (27, 'Malus domestica ''Boskoop''', 'Rosaceae', FALSE, 8),
    (28, 'Salix alba', 'Salicaceae', FALSE, 25);

INSERT INTO species_name (species_id, language, name) VALUES
    (1, 'en', 'small-leaved lime'), (1, 'de', 'Winterlinde'), (1, 'fr', 'tilleul à petites feuilles'),
    (1, 'pl', 'lipa drobnolistna'), (1, 'ru', 'липа сердцевидная'), (1, 'uk', 'липа серцелиста'),
    (2, 'en', 'silver lime'), (2, 'de', 'Silberlinde'), (2, 'fr', 'tilleul argenté'),
    (2, 'tr', 'gümüşi ıhlamur'),
    (3, 'en', 'Norway maple'), (3, 'de', 'Spitzahorn'), (3, 'fr', 'érable plane'),
    (3, 'pl', 'klon zwyczajny'), (3, 'sv', 'skogslönn'),
    (4, 'en', 'sycamore'), (4, 'de', 'Bergahorn'), (4, 'fr', 'érable sycomore'),
    (5, 'en', 'horse chestnut'), (5, 'de', 'Rosskastanie'), (5, 'fr', 'marronnier commun'),
    (5, 'el', 'αγριοκαστανιά'), (5, 'ru', 'каштан конский'),
    (6, 'en', 'London plane'), (6, 'de', 'Ahornblättrige Platane'), (6, 'fr', 'platane commun'),
    (6, 'el', 'πλάτανος'), (6, 'ar', 'دلب'), (6, 'he', 'דולב'),
    (7, 'en', 'English oak'), (7, 'de', 'Stieleiche'), (7, 'fr', 'chêne pédonculé'),
    (7, 'pl', 'dąb szypułkowy'), (7, 'hu', 'kocsányos tölgy'), (7, 'ru', 'дуб черешчатый'),
    (8, 'en', 'Turkey oak'), (8, 'de', 'Zerreiche'), (8, 'tr', 'saçlı meşe'),
    (9, 'en', 'ash'), (9, 'de', 'Gemeine Esche'), (9, 'fr', 'frêne élevé'),
    (10, 'en', 'field elm'), (10, 'de', 'Feldulme'), (10, 'fr', 'orme champêtre'),
    (12, 'en', 'silver birch'), (12, 'de', 'Hängebirke'), (12, 'fi', 'rauduskoivu'),
    (12, 'ru', 'берёза повислая'),
    (13, 'en', 'hornbeam'), (13, 'de', 'Hainbuche'), (13, 'fr', 'charme commun'),
    (14, 'en', 'beech'), (14, 'de', 'Rotbuche'), (14, 'fr', 'hêtre commun'), (14, 'da', 'bøg'),
    (15, 'en', 'ginkgo'), (15, 'fr', 'arbre aux quarante écus'), (15, 'ja', 'イチョウ'),
    (15, 'ko', '은행나무'), (15, 'zh', '银杏'),
    (16, 'en', 'Yoshino cherry'), (16, 'ja', 'ソメイヨシノ'), (16, 'zh', '东京樱花'),
    (17, 'en', 'wild cherry'), (17, 'de', 'Vogelkirsche'), (17, 'hy', 'կեռասենի'), (17, 'ka', 'ბალი'),
    (18, 'en', 'black locust'), (18, 'de', 'Robinie'), (18, 'hu', 'fehér akác'),
    (18, 'ja', 'ハリエンジュ'),
    (19, 'en', 'thornless honey locust'), (19, 'de', 'Dornenlose Gleditschie'),
    (20, 'en', 'sweetgum'), (20, 'de', 'Amberbaum'),
    (21, 'en', 'olive'), (21, 'de', 'Ölbaum'), (21, 'el', 'ελιά'), (21, 'ar', 'زيتون'),
    (21, 'he', 'זית'), (21, 'tr', 'zeytin'),
    (22, 'en', 'Scots pine'), (22, 'de', 'Waldkiefer'), (22, 'fi', 'metsämänty'),
    (23, 'en', 'yew'), (23, 'de', 'Eibe'), (23, 'fr', 'if commun'),
    (24, 'en', 'dawn redwood'), (24, 'de', 'Urweltmammutbaum'), (24, 'zh', '水杉'),
    (25, 'en', 'neem'), (25, 'hi', 'नीम'), (25, 'bn', 'নিম'), (25, 'ta', 'வேம்பு'), (25, 'ur', 'نیم'),
    (26, 'en', 'date palm'), (26, 'ar', 'نخلة التمر'), (26, 'he', 'תמר'), (26, 'fa', 'نخل خرما'),
    (27, 'en', 'Belle de Boskoop apple'), (27, 'de', 'Roter Boskoop'),
    (28, 'en', 'white willow'), (28, 'de', 'Silberweide'), (28, 'nl', 'schietwilg'),
    (28, 'th', 'ต้นหลิว');

INSERT INTO curiosity (id, topic, text_value, integer_value, real_value) VALUES
    (1, 'nothing at all', NULL, NULL, NULL),
    (2, 'an empty text is not nothing', '', 0, 0.0),
    (3, 'the word NULL', 'NULL', NULL, NULL),
    (4, 'spaces that count', '  two before, two after  ', NULL, NULL),
    (5, 'quotes', 'He''s "here", said the card', NULL, NULL),
    (6, 'lines and a tab', 'first line' || char(10) || 'second' || char(9) || 'column', NULL, NULL),
    (7, 'a carriage return', 'typed on an old machine' || char(13, 10) || 'and filed', NULL, NULL),
    (8, 'markup', '<tree id="7">oak & elm</tree> ]]> <!-- -->', NULL, NULL),
    (9, 'backslashes', 'C:\register\u0041\new', NULL, NULL),
    (10, 'a bell and an escape', 'ring' || char(7) || char(27) || '[31mred', NULL, NULL),
    (11, 'outside the basic plane', '🌳🌲🌴 𝔄𝔥𝔬𝔯𝔫', NULL, NULL),
    (12, 'two spellings of one letter', char(233) || ' ' || char(101, 769), NULL, NULL),
    (13, 'right to left', 'שלום وسلام', NULL, NULL),
    (14, 'SQL in the data', '''); DROP TABLE tree; --', NULL, NULL),
    (15, 'leading zeros', '007', 7, 7.0),
    (16, 'the largest integer', '9223372036854775807', 9223372036854775807, NULL),
    (17, 'the smallest integer', '-9223372036854775808', -9223372036854775808, NULL),
    (18, 'a sum that is not 0.3', '0.1 + 0.2', NULL, 0.30000000000000004),
    (19, 'a very small number', NULL, NULL, 2.2250738585072014e-308),
    (20, 'a very large number', NULL, NULL, 1.7976931348623157e308);
