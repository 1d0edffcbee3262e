"""Country codes of ISO 3166-1, those in force and those that once were.

The list is frozen with each release. A withdrawn code stays good for ever: names that carry it were
given when it was in force.
"""

from __future__ import annotations

__all__ = ["COUNTRIES", "WITHDRAWN"]

_CURRENT = """
ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bl bm bn bo bq br bs bt
bv bw by bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg eh
er es et fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht
hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls
lt lu lv ly ma mc md me mf mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni
nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg
sh si sj sk sl sm sn so sr ss st sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug
um us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw
"""
_ONCE = """
an bu cs ct dd dy fq fx hv jt mi nh nq nt pc pu pz rh su tp vd wk yd yu zr
"""
WITHDRAWN = frozenset(_ONCE.split())
COUNTRIES = frozenset(_CURRENT.split()) | WITHDRAWN
