#include "octet/telemetry/report/stylesheet.hpp"

namespace octet::telemetry::report {

const char* const stylesheet = R"(
:root{--bg:#fff;--panel:#f5f6f8;--ink:#16191d;--soft:#5a636e;--line:#e1e4e9;--zone:#eef1f4;--good:#0a6b4b;--good-bg:#def3ea;--bad:#a3300b;
--bad-bg:#fce7de;
--s0:#16191d;--s1:#0072b2;--s2:#d55e00;--s3:#009e73;--s4:#b0509c;--s5:#b98500;--s6:#4aa8dc;--s7:#7d5a3c;
--m0:#3b5b92;--m1:#7fa3d1;--m2:#2f8f83;--m3:#e0a458;--m4:#c05746;--m5:#9a8fb8;--m6:#7b8794;--m7:#c9b79c;
--h0:#eff2f5;--h1:#d3e3ef;--h2:#a9cbe2;--h3:#74a9d0;--h4:#3f7fb5;--h5:#265c93;--h6:#14305f;--hot:#e0560a;--alarm:#000}
@media screen and (prefers-color-scheme:dark){:root{--bg:#121519;--panel:#1a1e24;--ink:#e8eaed;--soft:#9aa4b0;--line:#2c323a;
--zone:#1d2229;--good:#63d6a8;--good-bg:#12382b;--bad:#ff9d76;--bad-bg:#43200f;
--s0:#e8eaed;--s1:#4fa8e8;--s2:#ff8a3d;--s3:#2fcf9f;--s4:#e08fcb;--s5:#f0bd3a;--s6:#9bd8ff;--s7:#c9a27e;
--m0:#6f93d2;--m1:#a9c6ec;--m2:#4fbfb0;--m3:#f0bc74;--m4:#e47f6b;--m5:#bcb0dc;--m6:#98a4b1;--m7:#dccbb0;
--h0:#20252c;--h1:#1d3a52;--h2:#22557d;--h3:#2f78ab;--h4:#56a0d3;--h5:#8cc3ea;--h6:#dff0ff;--hot:#ff7a2e;--alarm:#fff}
.band{opacity:.26!important}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",Arial,sans-serif}
main{max-width:1240px;margin:0 auto;padding:28px 20px 64px}
h1{font-size:clamp(22px,4vw,32px);line-height:1.2;margin:2px 0 10px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:19px;margin:0 0 12px}
h3{font-size:15px;margin:0 0 2px}
h4{font-size:13.5px;margin:0 0 2px}
p{margin:0 0 8px;max-width:100ch}
section{margin-top:36px;padding-top:20px;border-top:1px solid var(--line)}
.kicker{margin:0;color:var(--soft);font-size:12.5px;letter-spacing:.08em;text-transform:uppercase}
.verdict{font-size:17px;margin-bottom:18px}
.soft{color:var(--soft);font-size:13px}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,300px),1fr));gap:8px 24px;margin:0;font-size:13.5px}
.facts dt{color:var(--soft);font-size:12px}
.facts dd{margin:0;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{padding:7px 10px;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
thead th{color:var(--soft);font-weight:500;font-size:12.5px;vertical-align:bottom;border-bottom-color:var(--soft)}
tbody th{font-weight:600}
th:first-child,td:first-child{padding-left:0}
thead th{overflow-wrap:break-word}
.summary tbody th{min-width:8em}
.number{font-variant-numeric:tabular-nums;white-space:nowrap}
.summary .number,.summary thead th:not(:first-child){text-align:right}
.summary th svg{margin-right:6px}
.summary+p{margin-top:10px}
.plain{margin-top:20px}
.code,code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:12px}
.badge{display:inline-block;margin-left:8px;padding:0 7px;border-radius:9px;font-size:11.5px;line-height:18px;white-space:nowrap}
.badge.good{color:var(--good);background:var(--good-bg)}
.badge.open{color:var(--soft);background:var(--zone)}
.badge.bad{color:var(--bad);background:var(--bad-bg)}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:32px 36px}
.grid.thirds{grid-template-columns:repeat(auto-fit,minmax(min(100%,320px),1fr))}
figure{margin:0;min-width:0;display:flex;flex-direction:column}
figcaption{flex:1;display:flex;flex-direction:column}
figcaption p{color:var(--soft);font-size:12.5px;line-height:1.4;margin:0 0 6px}
figcaption .unit{color:var(--ink);margin:auto 0 0;padding:8px 0}
.area{padding:0 14px 0 58px}
.area.flush{padding:0}
svg{overflow:visible;vertical-align:middle}
.frame{display:block}
.frame svg:not(.mark){overflow:hidden}
.frame text{fill:var(--ink);font-size:12px}
.frame .tick{fill:var(--soft);font-size:11.5px;font-variant-numeric:tabular-nums}
.frame .label{fill:var(--soft);font-size:11.5px}
.frame .name{font-weight:600;font-size:13px}
.frame .value{font-size:12.5px;font-variant-numeric:tabular-nums}
.rows text{fill:var(--soft);font-size:10px;font-family:"Arial Narrow","Liberation Sans Narrow","Roboto Condensed",system-ui,sans-serif}
.grid>.chart{justify-content:flex-end}
table+.grid{margin-top:22px}
line.grid{stroke:var(--line)}
.axis{stroke:var(--soft)}
figcaption .nothing{color:var(--good);margin-top:8px;font-size:13px}
.chart:not(.bars)+.bars figcaption{flex:none}
.part-line{stroke:var(--bg);stroke-width:1.5}
.part-line.thin{stroke-width:.5}
.grid+.grid{margin-top:32px}
.zone{fill:var(--zone)}
.rail{fill:var(--panel)}
.hint{fill:transparent}
.legend{display:flex;flex-wrap:wrap;gap:3px 14px;list-style:none;margin:6px 0 0;padding:0;font-size:12.5px}
.legend svg{margin-right:5px}
.legend.scale{gap:3px 9px;font-size:11.5px;padding-bottom:7px;margin-top:auto}
.line{fill:none;stroke-width:1.7;stroke-linejoin:round;vector-effect:non-scaling-stroke}
.line.s0{stroke-width:2.2}
.band{stroke:none;opacity:.16}
.shade{fill:var(--soft);stroke:none;opacity:.2}
.mark path{stroke:var(--bg);stroke-width:1}
.s0{stroke:var(--s0);fill:var(--s0)}.s1{stroke:var(--s1);fill:var(--s1)}.s2{stroke:var(--s2);fill:var(--s2)}.s3{stroke:var(--s3);
fill:var(--s3)}
.s4{stroke:var(--s4);fill:var(--s4)}.s5{stroke:var(--s5);fill:var(--s5)}.s6{stroke:var(--s6);fill:var(--s6)}.s7{stroke:var(--s7);
fill:var(--s7)}
.frame .line,.legend .line{fill:none}
.frame .band{stroke:none}
.part{stroke:var(--bg);stroke-width:1}
.m0{fill:var(--m0)}.m1{fill:var(--m1)}.m2{fill:var(--m2)}.m3{fill:var(--m3)}.m4{fill:var(--m4)}.m5{fill:var(--m5)}.m6{fill:var(--m6)}
.m7{fill:var(--m7)}
.cells path{fill:none;stroke-width:1;shape-rendering:crispEdges}
.cells{background:transparent}
.h0{stroke:var(--h0);fill:var(--h0)}.h1{stroke:var(--h1);fill:var(--h1)}.h2{stroke:var(--h2);fill:var(--h2)}.h3{stroke:var(--h3);
fill:var(--h3)}
.h4{stroke:var(--h4);fill:var(--h4)}.h5{stroke:var(--h5);fill:var(--h5)}.h6{stroke:var(--h6);fill:var(--h6)}
.hot{stroke:var(--hot);fill:var(--hot)}.alarm{stroke:var(--alarm);fill:var(--alarm)}
.swatch{stroke:var(--line)}
details{border-bottom:1px solid var(--line)}
summary{cursor:pointer;padding:9px 0;display:flex;gap:4px 12px;flex-wrap:wrap;align-items:baseline}
summary::before{content:"▸";color:var(--soft);width:12px}
details[open]>summary::before{content:"▾"}
summary .name,.incidents .name{font-weight:600}
.health>h3{margin:28px 0 14px}
.maps{display:grid;gap:26px 22px;padding:4px 0 22px}
.area.map{padding:0 8px 0 var(--labels)}
.pairs th{width:34%;font-weight:400;color:var(--soft)}
.pairs th,.pairs td{padding:3px 10px 3px 0}
.plan{margin-bottom:14px}
.alerts th,.alerts td{padding:3px 10px 3px 0}
.alerts td:nth-child(-n+5){overflow-wrap:normal}
.alerts .badge{margin:0}
.plan th,.plan td{padding:3px 10px 3px 0}
.sample{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--panel);border-radius:7px;padding:8px 11px;margin:2px 0 14px;
font:12.5px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
.sample .soft{font-size:inherit}
a{color:inherit}
h3.apart{margin-top:26px}
.incidents{list-style:none;margin:0;padding:0;font-size:13.5px}
.incidents li{display:flex;flex-wrap:wrap;gap:2px 12px;padding:7px 0;border-bottom:1px solid var(--line);align-items:baseline}
.incidents .badge{margin:0}
.incidents .words{flex:1 1 300px;overflow-wrap:anywhere}
@media (min-width:720px),print{
.maps{grid-template-columns:calc((100% - var(--labels) - 44px)/3 + var(--labels)) 1fr 1fr}
.maps.four{grid-template-columns:calc((100% - var(--labels) - 66px)/4 + var(--labels)) 1fr 1fr 1fr}
.maps .chart+.chart .area.map{padding-left:0}
.maps .chart+.chart .rows{display:none}
}
@media screen and (max-width:719px){
main{padding:20px 14px 48px}
.facts>div{display:grid;grid-template-columns:96px 1fr}
.facts dt{line-height:20px}
.summary thead,.plan thead,.alerts thead{display:none}
.summary tbody tr{display:grid;grid-template-columns:repeat(3,1fr);grid-auto-flow:dense;gap:6px 12px;padding:10px 0;
border-bottom:1px solid var(--line)}
.summary tbody th{grid-column:1/-1;border:0;padding:0;font-size:15px}
.summary td,.plan td,.alerts td{display:block;border:0;padding:0}
.summary .number{text-align:left}
.summary td.gap{grid-column:span 2}
.summary td::before{content:attr(data-label);display:block;color:var(--soft);font-size:11.5px;line-height:1.3}
.plan tr{display:grid;grid-template-columns:1fr auto auto;gap:0 12px;padding:7px 0;border-bottom:1px solid var(--line)}
.plan td:last-child{grid-column:1/-1;color:var(--soft)}
.alerts tr{display:flex;flex-wrap:wrap;gap:0 12px;padding:7px 0;border-bottom:1px solid var(--line);align-items:baseline}
.alerts td:nth-child(n){overflow-wrap:anywhere}
.alerts td:nth-child(n+6){flex:0 0 100%}
.alerts td:last-child{color:var(--soft)}
}
@media print{
@page{margin:13mm}
body{font-size:10.5pt}
main{max-width:none;padding:0}
section{margin-top:20px;padding-top:12px}
figure,tr,.incidents li{break-inside:avoid}
table,td .soft{font-size:8.5pt}
thead th{font-size:8pt}
th,td{padding:4px 6px}
.badge{margin-left:4px;padding:0 5px}
h2,h3,summary{break-after:avoid}
summary::before{content:""}
details::details-content{content-visibility:visible;display:block}
.line.s1{stroke-dasharray:7 2}.line.s2{stroke-dasharray:4 2}.line.s3{stroke-dasharray:2 2}.line.s4{stroke-dasharray:9 2 2 2}
.line.s5{stroke-dasharray:5 2 1 2}.line.s6{stroke-dasharray:1 2}.line.s7{stroke-dasharray:12 3}
}
)";

}  // namespace octet::telemetry::report
