"""Words: the vocabulary that records are written with, and the draw that picks from it.

A draw is 64 bytes that depend on the seed, the API and the record's index and on nothing else, so a
record reads the same in every process, in whatever order records are asked for.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")

ADJECTIVES = (
    "Adaptive", "Bayesian", "Causal", "Distributed", "Early", "Familial", "Genomic", "Hierarchical",
    "Incremental", "Joint", "Kinetic", "Longitudinal", "Multicentre", "Nonlinear", "Optimal", "Paediatric",
    "Quantitative", "Robust", "Spatial", "Transcriptomic", "Unsupervised", "Viral", "Wearable",
    "β-adrenergic",
)  # fmt: skip
NOUNS = (
    "assessment", "biomarkers", "cohorts", "dosing", "estimation", "follow-up", "gradients", "heterogeneity",
    "imaging", "kinases", "lesions", "mechanisms", "networks", "outcomes", "prediction", "quality of life",
    "receptors", "screening", "tolerance", "uptake", "variants", "withdrawal", "x-ray diffraction", "yield",
)  # fmt: skip
TOPICS = (
    "acute kidney injury", "breast cancer", "chronic pain", "deep sea sediments", "epilepsy",
    "fine particles",
    "gut microbiota", "heart failure", "influenza A/H5N1", "juvenile arthritis", "knee replacement", "lupus",
    "malaria", "neonatal sepsis", "obesity", "Parkinson’s disease", "rice cultivars", "sickle cell anaemia",
    "type 2 diabetes", "urban heat islands", "vitamin D deficiency", "wheat rust", "COVID-19",
    "“silent” strokes",
)  # fmt: skip
PLACES = (
    "Denmark", "rural Kenya", "São Paulo", "Hokkaidō", "the Alps", "western Norway", "Gujarat", "Québec",
    "the Sahel", "New Zealand", "Łódź", "the Mekong delta", "Andalucía", "Anatolia", "Ghana", "the Andes",
)  # fmt: skip
GIVEN = (
    "Ada", "Björn", "Chidi", "Dolores", "Ewa", "Farid", "Grace", "Hiroko", "Inês", "Jun", "Katalin", "Li",
    "María", "Nikos", "Olga", "Priya", "Quentin", "Ruth", "Søren", "Tariq", "Ursula", "Víctor", "Wen", "Zoë",
)  # fmt: skip
FAMILY = (
    "Adeyemi", "Bergström", "Castañeda", "Dvořák", "Eriksen", "Fontaine", "García", "Haddad", "Ito", "Jansen",
    "Kowalski", "Lindqvist", "Müller", "Nguyễn", "O’Brien", "Papadopoulos", "Quispe", "Rossi", "Sánchez",
    "Takahashi", "Usman", "Varga", "Wójcik", "Zhang",
)  # fmt: skip
INSTITUTES = (
    "Institute of Public Health", "Department of Applied Statistics", "University Hospital, Ward 4",
    "Centre for Marine Research", "School of Medicine", "National Laboratory", "Faculty of Agriculture",
    "Royal College of Surgeons",
)  # fmt: skip
JOURNALS = (
    "Annals of Example Medicine", "Journal of Imagined Results", "Nordic Review of Methods",
    "Open Field Studies",
    "Proceedings of the Fictional Society", "Quarterly of Careful Measurement", "The Sample Lancet",
    "Transactions on Placeholder Systems",
)  # fmt: skip
PUBLISHERS = ("Example Press", "Fictional University Press", "Placeholder & Sons", "Société des Exemples")
SENTENCES = (
    "We followed participants for a median of 4.2 years and adjusted for age, sex and centre.",
    "The effect was largest in the first quartile (p < 0.01) and vanished after re-calibration.",
    "Samples were stored at −80 °C and analysed in duplicate by two blinded readers.",
    "No difference was seen between arms; the confidence interval excludes a clinically relevant benefit.",
    "Code and data are available from the authors under a licence that permits re-use.",
    "Missing values were imputed twenty times and the estimates pooled by Rubin’s rules.",
    "A sensitivity analysis with a “worst case” assumption gave the same direction of effect.",
    "Limitations include the single-centre design and the low response rate in winter.",
)


def draw(seed: int, name: str, index: int) -> bytes:
    """Return the 64 bytes from which record `index` of API `name` is made."""
    return blake2b(f"{seed}/{name}/{index}".encode(), digest_size=64).digest()


def pick(choices: Sequence[T], byte: int) -> T:
    return choices[byte % len(choices)]


def write_title(drawn: bytes, version: int) -> str:
    """Write a title; from the second version on it says so."""
    adjective, noun, topic, place = drawn[8:12]
    subject = f"{pick(ADJECTIVES, adjective)} {pick(NOUNS, noun)} of {pick(TOPICS, topic)}"
    title = f"{subject} in {pick(PLACES, place)}"
    return title if version == 1 else f"{title} (revision {version})"


def write_text(drawn: bytes, count: int) -> str:
    return " ".join(pick(SENTENCES, byte) for byte in drawn[12 : 12 + count])


def list_people(drawn: bytes) -> list[tuple[str, str]]:
    """Return one to four (given name, family name) pairs."""
    count = 1 + drawn[20] % 4
    return [(pick(GIVEN, drawn[21 + n]), pick(FAMILY, drawn[25 + n])) for n in range(count)]
