"""The words that questions about GPUs are made of, and what a mistyped one was meant to be.

A rule (`bot.router.intents`) understands a sentence only if it knows almost all of its words: a
word that stands in none of these lists speaks of something else.
"""

from __future__ import annotations

from functools import lru_cache

from rapidfuzz import process
from rapidfuzz.distance import OSA


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


POLITE = _words(
    "please pls plz kindly hey hi hello yo hallo bot gpuwhy thanks thank thx cheers dear team all folks"
    " everyone guys sir friend good morning afternoon evening day ok okay well oh hm hmm um ah so sorry"
    " excuse urgent asap quick question and fyi btw"
)
# Words that change nothing: they stand in questions and complaints alike.
FILLER = POLITE | _words(
    "a an the this that these those it its i me my mine we us our ours you your he she they them their"
    " is are was were be been being am do does did done doing have has had having can could will would"
    " shall should may might must of on in at to from for with by as and or then than there here about"
    " just only really very too quite so much such pretty rather kind sort bit little lot still again"
    " now currently right moment today lately recently suddenly always often sometimes constantly"
    " already ever yet also even like some any both each every whole entire one ones other others same"
    " what which who whose how when where whether if why let lets go going get gets getting got see sees"
    " seeing seen look looks looking seem seems feel feels appear appears show shows showing say says"
    " tell give gives think thinks guess know believe suspect wonder wondering need want needs wants like"
    " quickly fast briefly maybe perhaps possibly probably actually exactly specifically super extremely"
    " something anything everything nothing somebody someone anyone anybody up out over between during"
    " run runs running use uses using make makes made keep keeps take takes taking come comes coming"
    " find list idea reason cause causes causing point exact current please not no never t s re ve d ll m"
    " possible able long while since way thing things there's more most less few many ago live guys"
    " user users customer customers people team colleague prod production staging environment"
)
# What is wrong with a GPU, or could be.
COMPLAINT = _words(
    "slow slower slowest slowly slowness slowdown sluggish laggy lag lags lagging crawl crawls crawling"
    " throttle throttles throttled throttling hot hotter overheat overheats overheating overheated warm"
    " cold idle idling stuck hang hangs hanging hung freeze freezes freezing frozen dead dying dies down"
    " offline unreachable lost missing gone broken breaking sick ill bad worse worst degraded degrading"
    " degradation unhealthy weird odd strange funny unusual abnormal low lower drop drops dropped dropping"
    " fall falls falling fallen fail fails failing failed failure failures fault faults faulty crash crashes"
    " crashed crashing error errors problem problems problematic issue issues trouble troubles wrong limit"
    " limits limited capped cap bottleneck bottlenecked underperform underperforming underperforms behind"
    " straggler straggling straggle wait waits waiting starve starved starving stall stalls stalled"
    " stalling unstable flaky misbehave misbehaving poor poorly suffering suffers struggle struggling"
    " half pathetic terrible awful horrible cooked fire red screwed borked busted wonky sad unhappy hurting"
    " incident incidents acting halved halves attention timeout timeouts nan fluctuating fluctuates spiking spikes spike rebooted reboot"
    " reboots restart restarts downclocked downclocking noisy corrupt corrupted leaking worry worried"
    " reset resets pegged saturated"
)
HEALTH = _words(
    "ok okay fine healthy good alright well normal green alive up working works work stable great sane"
    " happy clean doing going performing operational health status state condition"
)
# What is measured, and what runs: known, but neither here nor there.
SUBJECT = _words(
    "gpu gpus card cards accelerator accelerators device devices node nodes host hosts machine machines"
    " server servers box boxes cluster clusters rack fleet system systems workload workloads job jobs pod"
    " pods training train inference serving step steps iteration iterations epoch model run runs task"
    " performance perf clock clocks clocking frequency frequencies mhz ghz boost boosting power watt watts"
    " temp temps temperature temperatures thermal thermals cooling fan fans util utilization utilisation"
    " usage load draw draws drawing consume consumes overview memory mem hbm vram ecc xid xids sxid nvlink nvswitch pcie link links bandwidth"
    " throughput latency speed flops tflops tensor core cores sm occupancy tokens token allreduce nccl"
    " driver kernel bus count number percent % rate high peak max maximum full expected usual usually"
    " before after under during average metrics readings reading data"
)
LOOK = _words(
    "check checks checking diagnose diagnosing diagnosis diagnostic diagnostics inspect investigate examine debug"
    " eyes debugging troubleshoot analyse analyze analysis triage help look looking figure understand explain"
    " view review assess verify test"
)
FLEET = _words(
    "fleet cluster clusters gpus cards accelerators devices nodes hosts machines servers boxes everything"
    " anything gpu node host machine server something anybody anyone who jobs pods overall"
)
SWEEP = _words("sweep scan")
CAPTURE = _words("profile capture trace record")
TAKE = _words("take grab get run start do make collect record capture give")
RECORDING = _words("profile trace capture recording profiling")
DEFINE = _words(
    "mean means meaning meanings decode decoded explain explanation define definition describe"
    " description interpret translate stand stands document documentation documented"
)
SEVERITY = _words(
    "bad fatal serious critical dangerous worry worried severe severity ignore ignorable safe normal"
    " harmless fix problem ok okay fine important recoverable app application hardware hw software bug"
    " fault error concern concerned concerning alarming good expected action do caused causes cause"
)
# Somebody has dealt with it, or speaks of what is not the case.
SETTLED = _words(
    "fixed solved resolved replaced rebooted repaired restarted recovered swapped drained cordoned rma"
    " because if unless until once decommissioned tomorrow later"
)
# What follows is somebody else's.
REPORTED = _words("said told asked wrote mentioned claimed reported answered replied")
# What may stand in any question without changing what it asks.
COMMON = FILLER | COMPLAINT | HEALTH | SUBJECT | LOOK | DEFINE

PROFILERS = {
    "nsys": "nsys", "nsight": "nsys", "nsight-systems": "nsys", "nsight-compute": "ncu", "ncu": "ncu", "pyspy": "py-spy",
    "py-spy": "py-spy", "rocprof": "rocprofv3", "rocprofv3": "rocprofv3", "kineto": "torch",
}  # fmt: skip

DEFAULT_PROFILER = "nsys"
DEFAULT_DURATION_S = 10.0

CONTRACTIONS = {
    "whats": "what is", "wats": "what is", "what's": "what is", "hows": "how is", "how's": "how is",
    "whos": "who is", "who's": "who is", "wheres": "where is", "where's": "where is",
    "theres": "there is", "there's": "there is", "it's": "it is", "that's": "that is",
    "something's": "something is", "anything's": "anything is", "everything's": "everything is",
    "why's": "why is", "whys": "why is", "i'm": "i am", "im": "i am", "i'd": "i would",
    "id like": "i would like", "we'd": "we would", "i've": "i have", "we've": "we have",
    "we're": "we are", "you're": "you are", "they're": "they are", "let's": "lets",
    "u": "you", "r": "are", "ur": "your", "wtf": "why", "dont": "do not", "don't": "do not",
    "doesnt": "does not", "doesn't": "does not", "didnt": "did not", "didn't": "did not",
    "isnt": "is not", "isn't": "is not", "arent": "are not", "aren't": "are not", "wasnt": "was not",
    "wasn't": "was not", "cant": "can not", "can't": "can not", "cannot": "can not",
    "wont": "will not", "won't": "will not", "shouldn't": "should not", "couldn't": "could not",
    "hasn't": "has not", "haven't": "have not", "needn't": "need not", "gimme": "give me",
    "wanna": "want to", "gonna": "going to", "nvm": "never mind", "nevermind": "never mind",
}  # fmt: skip

# Words near those of the lists that are meant as they stand.
_MEANT = _words(
    "snow flow blow glow slot shows way buy stick sink pick kick race place sleep sweet heal wealth wealthy"
    " treble chuck cheek track crack trick brother profits profiles captured profiled traced captures traces"
    " recorded recorder profiler tracing capturing memo helped helper codes coder decoder sweeps swept mode"
    " modes stock light sound words store score mouse house place plate state skate prices price paper"
)
KNOWN = (
    COMMON | FLEET | SWEEP | CAPTURE | TAKE | RECORDING | SEVERITY | SETTLED | REPORTED | _MEANT
    | frozenset(PROFILERS) | frozenset(CONTRACTIONS)
)  # fmt: skip
_GUESSED = sorted(
    COMMON | FLEET | SWEEP | CAPTURE | RECORDING | SEVERITY | frozenset({"nsys"}),
    key=lambda w: (len(w), w),
)
_LONG, _VERY_LONG = 5, 8


@lru_cache(maxsize=4096)
def meant(word: str) -> str:
    """Return what a word was meant to be: itself if it is known or like no other.

    In a short word two letters may be swapped, in longer ones one is too many, too few or wrong, in
    long ones two are.
    """
    if word in KNOWN or not word.isalpha() or not 3 <= len(word) <= 20:
        return word
    if len(word) < _LONG:
        swapped = [known for known in _GUESSED if sorted(known) == sorted(word)]
        return next((known for known in swapped if OSA.distance(word, known) == 1), word)
    slips = 1 if len(word) < _VERY_LONG else 2
    found = process.extractOne(word, _GUESSED, scorer=OSA.distance, score_cutoff=slips)
    return found[0] if found and len(found[0]) >= _LONG - 1 else word
