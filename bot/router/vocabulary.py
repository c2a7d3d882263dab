"""The words that questions about GPUs are made of.

A rule (`bot.router.intents`) understands a sentence only if it knows almost all of its words: a
word that stands in none of these lists speaks of something else.
"""

from __future__ import annotations

from bot.router.spans import word_set

POLITE = word_set(
    "afternoon ah all and asap bot btw cheers day dear evening everyone excuse folks friend fyi",
    "good gpuwhy guys hallo hello hey hi hm hmm kindly morning oh ok okay please pls plz question",
    "quick sir so sorry team thank thanks thx um urgent well yo",
)
# Words that change nothing: they stand in questions and complaints alike.
FILLER = POLITE | word_set(
    "a able about actually again ago already also always am an any anybody anyone anything appear",
    "appears are as at be been being believe between bit both briefly by can cause causes causing",
    "colleague come comes coming constantly could current currently customer customers d did do",
    "does doing done during each entire environment even ever every everything exact exactly",
    "extremely fast feel feels few find for from get gets getting give gives go going got guess",
    "had has have having he here how i idea if in is it its just keep keeps kind know lately less",
    "let lets like list little live ll long look looking looks lot m made make makes many may",
    "maybe me might mine moment more most much must my need needs never no not nothing now of",
    "often on one ones only or other others our ours out over people percent perhaps point",
    "possible possibly pretty probably prod production quickly quite rather re really reason",
    "recently right run running runs s same say says see seeing seem seems seen sees shall she",
    "should show showing shows since some somebody someone something sometimes sort specifically",
    "staging still such suddenly super suspect t take takes taking tell than that the their them",
    "then there these they thing things think thinks this those to today too up us use user users",
    "uses using ve very want wants was way we were what when where whether which while who whole",
    "whose why will with wonder wondering would yet you your",
)
# What is wrong with a GPU, or could be.
COMPLAINT = word_set(
    "abnormal acting attention awful bad behind borked bottleneck bottlenecked breaking broken",
    "busted cap capped cold cooked corrupt corrupted crash crashed crashes crashing crawl crawling",
    "crawls dead degradation degraded degrading dies down downclocked downclocking drop dropped",
    "dropping drops dying error errors fail failed failing fails failure failures fall fallen",
    "falling falls fault faults faulty fire flaky fluctuates fluctuating freeze freezes freezing",
    "frozen funny gone half halved halves hang hanging hangs horrible hot hotter hung hurting idle",
    "idling ill incident incidents issue issues lag lagging laggy lags leaking limit limited",
    "limits lost low lower misbehave misbehaving missing nan noisy odd offline overheat overheated",
    "overheating overheats pathetic pegged poor poorly problem problematic problems reboot",
    "rebooted reboots red reset resets restart restarts sad saturated screwed sick slow slowdown",
    "slower slowest slowly slowness sluggish spike spikes spiking stall stalled stalling stalls",
    "starve starved starving straggle straggler straggling strange struggle struggling stuck",
    "suffering suffers terrible throttle throttled throttles throttling timeout timeouts trouble",
    "troubles underperform underperforming underperforms unhappy unhealthy unreachable unstable",
    "unusual wait waiting waits warm weird wonky worried worry worse worst wrong",
)
HEALTH = word_set(
    "alive alright clean condition doing fine going good great green happy health healthy normal",
    "ok okay operational performing sane stable state status up well work working works",
)
# What is measured, and what runs.
SUBJECT = word_set(
    "accelerator accelerators after allreduce average bandwidth before boost boosting box boxes",
    "bus card cards clock clocking clocks cluster clusters consume consumes cooling core cores",
    "count data device devices draw drawing draws driver during ecc epoch expected fan fans fleet",
    "flops frequencies frequency full ghz gpu gpus hbm high host hosts inference iteration",
    "iterations job jobs kernel latency link links load machine machines max maximum mem memory",
    "metrics mhz model nccl node nodes number nvlink nvswitch occupancy overview pcie peak percent",
    "perf performance pod pods power rack rate reading readings run runs server servers serving sm",
    "speed step steps sxid system systems task temp temperature temperatures temps tensor tflops",
    "thermal thermals throughput token tokens train training under usage usual usually util",
    "utilisation utilization vram watt watts workload workloads xid xids",
)
LOOK = word_set(
    "analyse analysis analyze assess check checking checks debug debugging diagnose diagnosing",
    "diagnosis diagnostic diagnostics examine explain eyes figure help inspect investigate look",
    "looking review test triage troubleshoot understand verify view",
)
FLEET = word_set(
    "accelerators anybody anyone anything boxes cards cluster clusters devices everything fleet",
    "gpu gpus host hosts jobs machine machines node nodes overall pods server servers something",
    "who",
)
SWEEP = word_set(
    "scan sweep",
)
CAPTURE = word_set(
    "capture profile record trace",
)
RECORDING = word_set(
    "capture profile profiling recording trace",
)
# What is asked of a code: its meaning, or how bad it is.
DEFINE = word_set(
    "decode decoded define definition describe description document documentation documented",
    "explain explanation interpret mean meaning meanings means stand stands translate",
)
SEVERITY = word_set(
    "action alarming app application bad bug cause caused causes concern concerned concerning",
    "critical dangerous do error expected fatal fault fine fix good hardware harmless hw ignorable",
    "ignore important normal ok okay problem recoverable safe serious severe severity software",
    "worried worry",
)
# Somebody has dealt with it, or speaks of what is not the case.
SETTLED = word_set(
    "because cordoned decommissioned drained fixed if later once rebooted recovered repaired",
    "replaced resolved restarted rma solved swapped tomorrow unless until",
)
# What follows is somebody else's.
REPORTED = word_set(
    "answered asked claimed mentioned replied reported said told wrote",
)
# What may stand in any question without changing what it asks.
COMMON = FILLER | COMPLAINT | HEALTH | SUBJECT | LOOK | DEFINE
