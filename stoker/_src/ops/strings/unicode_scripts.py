"""The script of every code point, numbered as in ICU (UScriptCode).

The table was made by calling TensorFlow 2.21's `unicode_script` for every code point. It has the lengths of runs (uint32),
then the script of each run (uint8), compressed.
"""

import base64
import functools
import zlib

import numpy as np

RUNS = 1587
_TABLE = (
    'c-o~{>u+2~6~A-$?(W@(*Y?I)XKiP_NgX@!BX2iO(lkj+6RK2B)0CuXqAC(C2bz$k#6^9m52Y%lBBiB>J}e#qN@ziX@=7Tb8W4!TfQnE3z-K=2'
    '3HXA<nR|cZ{dw563)OFD=iYgobLPyMbI#l#2!j1u2DIc*Z_;A4bfeB{>BsXh>fh<#82W4pwe)E@uO-5m4BFkh@tzHh<M%$)d$m-w^k{howBAJD'
    'DBicCb~JWqiM0%Zmt9i{G8()a&^2vJ6Lk^u2Jn6s^;(*H1M%JrS!~~KYTt-wr^_L{JARhOw3d~4ucFP3U#;Z`*3yl+1Ej|oZLZYNp7-<{p}*jb'
    'k3hrF7(;tn_w<{iaqakpZE9X`)|;Op+Ii1D?0YZv!i_0-Hq(i}lfUSV&(N4|lBEn9d2jr3`t|ww`psZ$rh|T~kTE3vvQ8pTW<z{4o(?luM+Evl'
    'ov_UrSc$P+-n!j+??GGa^+#A&NbS70Mf4Yzpj~XEyG}gvo)6)@4Z*|bv(0;Vw%bGJi2JK}Ugg=EAsJY<oVO=2+KRL<c0YEJUEA}&uFZZr|Fp_$'
    '@5k7z*PbICxN~fM*T>O6g0?YwXP=%YJz9A#!>9W4*!~GxvwgVL+lRa-n`__Ty|4L@^PG%3z4n_?H=$b>vyP$N>Ex*}^_zCgA=D-C>!S6SVE@kc'
    '`mkTV9XbDS59vHdweRB!WZ$;`1o%xruLscQVyQc`WiNKx_Xh31m3I<j1}L^=NH0Sq&t8flA;z-Y6}0za>}{Yu1)BS`Y=>Rj_8GKylW*CK^}6+i'
    '<S$~<VOJX;pKIfjv#>*Fe_P0}u%9}BdKb;J4>ivgM!omAL)<r%--L+Cd|oO<$G)%d;$ngJ(zYL`_-;u5OtTB~oA60%&^PMo#qk_O-HWs3V#+IF'
    '8mFB-UxrX~VaqP;yw6Z>w~6wdIp{CHgb$b@UtA&IRG@SG|JGK9qp&;YlTSdG@1u?58t+#fGDNh$5!u+WHu2cD-%amX@^SZ2+-t&bmhtY+>pnam'
    'AwAxu<qa*@>S_PKkEFDpkJ5Sv<h18y(xkrTH0H&~D?bH!rpYIbV_)5wbZ2)4^A4acqrHio(~#dUksq)$W~skOx*Mh(x<EGX$C#TDr`)}O{UF!v'
    'Y-7SZFA>qco$_Tz^Yw{zZT%Qy{XwJ$<(x^!-4C11LkI3YGT_;;>5!jVKA*#xIs=+L*kk*Ay_WT)i=H<A^E&bghV0Mre%6Z*P4B){qFiQ*_9D|k'
    'ublI-ev6b#mC-)n$;P>_JImJg9;2L*V}RYK!=Ar#{$mQy7s<A^kbiS`uo2M7pe;+Wu;JNi1ewNR51T0lI=zn&-3a>=BUU+Ef6>~pN%__=*N%CW'
    'bm;g_dO0=gsYdqN#J<FImRYaP_J)Yg0NKGl&{zez`!H`K`71}q&$m~Te36%5=Rwz%G0G<juwiE_HS&`yh*y<jv%3pf{oe|Iunqga4ShM%yOm|s'
    'wEV}o7r#RI95;R(et8HwaB*Z7{2OFLH+eC%PPU$-I9&zpG0-|q-x5mbcYD3RL+;73+2u;Rp`#+*AO6>SA?JmDEb{MUS?|u{;?tM3oT4!e<oZtk'
    'SFq16=dow{7V<4Q?B5FH)lP@k<4lHhAGSX38oqDbi`ZPI^|23)z4bP{d%v^6BE_nZ{Co-g-CB;q))N^`D^5&N9#$lO)AaOTfzA5+FzJ0~3TaPb'
    '(oxRqU+2B&Sa&A1$G6FLwo;BdpGjl-1GH~;y?@a1t`gW3wPg5{PClqi-qF~$Gfa65w~5iG$sguOuSJR>Ztd=FZ}<Eyop4g?`*0_U$PRkpn|$4r'
    'C`SCNKh={};`=5&!&dHpuEoBa)c0pV&wW?Ar0tOoJVW_=hWr-i7Pg#HVgG^lG4$O?bYnUj4b0gMA7b?|PxrXv;8RBo{sh)_u+6tA|C^X0n>U_b'
    '_j|cZ?DY?MJ|*jYi*w`dM7}X%THi7+g{d87$);}4w&wJDcW3r9f2O$2xto*oyh-m%j<$XHBjq(4=nly9dX?bE(6>j+?`ds=o*e#jaf$D~xh48c'
    'n>%<r`pXr6UgYgn)Io+K={rkuWT}0-J0GTXFTWRd)9roB=q7(+Y5xd0{DAij%h4%#_pKak`!AW)-rPBI^&I$~pj^0*?oBhEpL4Oe;l=1jAkQ6?'
    'yOznG_`713a*#TGKP`}KdDzug>2Be4kW;}vxRS=I>7LZzd;mTdYbnny>gb16fQB~yRT&;q|8Vth#f4a7{ozwu{vISkEJijkm7pRh_TM63iA^k-'
    '1S=ARL4ve4iXdDoig2AAm*Y>!6LP0wt%Q<{DVkzXjHEMqmO=Lt7+wO`ErXHvSSg(_un229U{r!pS=AO}Ed*mSRF(umxmuFtkyET+EzO`Q<BEwu'
    'CS@u?e}X~vE`yR{y=->aF56{yivAt4<9=~4a--tGy|VWXQG7PGvOFjzXhG_gxL#4{zY$Z1Npysr64dplGbK<CYDUhwB*Dhye@14co|k;8fEz6S'
    'd%bZWy$N(euZ5}Vzx1hueVV}3Br8=>qm`OgRoh|*$p*#KpOpBb6{D_l)ORU`yX65z@o;eXoSdu5tOT<%J0v%y7<y8kyg;mVVnrp+U62dP!@|l@'
    'UpN5?tZ}C{t`dof(-qp+AYq+IR27G`d&?puZK}3Jb#g{NZ7DUR(IqEjTBi5N9w}_wDqH1;iZ9By6h{+mYGF?1UVK4bkndQWl#^%WtQ>n@6gy=x'
    'p82voqIgIidR!iVR33dyEbfxqEUwB`mHb+QU&`C^8+k|eTRbce%d3jdD=y0`YT(~cyuN_1D4tsc^PJc41I0HLR}|k>49aVYZzuSvyd*FERu<#e'
    '34S7P$@k<9;LQX-UWA_!elAbjQ+=PLIH>r#T$HaR_=4il0)8Q<63o9Gyr=s*FZ1u|U#(AVt0phYvktJ?h0{>MCVps~7mJw%{0ewiaY^z01kP+e'
    'Dm><WfqWG7E<%tT=l=khhBTD'
)  # fmt: skip


@functools.cache
def runs() -> tuple[np.ndarray, np.ndarray]:
    """The first code point of each run of one script, and its script."""
    data = zlib.decompress(base64.b85decode(_TABLE))
    steps = np.frombuffer(data, "<u4", RUNS)
    return np.cumsum(steps), np.frombuffer(data, "<u1", RUNS, 4 * RUNS).astype(np.int32)


def scripts_of(code_points: np.ndarray) -> np.ndarray:
    """The script of each code point, -1 for invalid ones."""
    starts, scripts = runs()
    found = scripts[np.searchsorted(starts, code_points, side="right") - 1]
    return np.where((code_points >= 0) & (code_points < 0x110000), found, np.int32(-1)).astype(np.int32)
