"""Public tables as the experiments use them, with the public categories and bounds of each and where these come from.

Loaders take the directory (`raw_tables.data_directory`) with one folder a table, files as their origins publish them;
nothing of it is shipped. Two tables come with statsmodels. Bounds are facts about a variable's coding or unit, not the
extremes of the data.
"""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path

import numpy as np

from protocols.public_coding import Category, Dataset, Numeric, encode
from protocols.raw_tables import contents, statsmodels_table, text_columns

# adult.names lists the columns and categories ("?" is unknown). Age: the extraction kept AAGE > 16, the survey codes 90
# and over as 90. Hours: a two-digit field. Capital gain is top-coded at 99999; losses stay below 5000. Education is
# already in education-num, fnlwgt is a survey weight, and all countries but one are rare: these are left out.
_ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
)
_ADULT = (
    Numeric("age", 17, 90),
    Numeric("education-num", 1, 16),
    Numeric("capital-gain", 0, 99_999),
    Numeric("capital-loss", 0, 5_000),
    Numeric("hours-per-week", 1, 99),
    Category(
        "workclass",
        (
            *("Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay"),
            *("Never-worked", "?"),
        ),
    ),
    Category(
        "marital-status",
        (
            *("Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent"),
            "Married-AF-spouse",
        ),
    ),
    Category(
        "occupation",
        (
            *("Prof-specialty", "Craft-repair", "Exec-managerial", "Adm-clerical", "Sales", "Other-service"),
            *("Machine-op-inspct", "?", "Transport-moving", "Handlers-cleaners", "Farming-fishing", "Tech-support"),
            *("Protective-serv", "Priv-house-serv", "Armed-Forces"),
        ),
    ),
    Category("relationship", ("Husband", "Not-in-family", "Own-child", "Unmarried", "Wife", "Other-relative")),
    Category("race", ("White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other")),
    Category("sex", ("Male", "Female")),
)


def adult(directory: Path, part: str = "data") -> Dataset:
    """UCI 2 (1994 US census income): 32,561 rows of part "data", 16,281 of "test"; label: above 50K."""
    raw = contents(directory / "adult" / f"adult.{part}.gz")
    table = text_columns(raw[raw.index(b"\n") + 1 :] if part == "test" else raw, _ADULT_COLUMNS)
    table["income"] = np.char.rstrip(np.char.strip(table["income"]), ".")
    return encode(table, _ADULT, Category("income", ("<=50K", ">50K")))


# The header of the published extract lists the codes; age: five-year groups 1 to 17. It keeps people with a known job,
# whose economic status is one of three.
_DUTCH = (
    Category("sex", ("1", "2")),
    Numeric("age", 1, 17),
    Category("household_position", ("1122", "1110", "1121", "1131", "1132", "1140", "1210", "1220")),
    Category("household_size", ("112", "111", "113", "114", "125", "126")),
    Category("prev_residence_place", ("1", "2", "9")),
    Category("citizenship", ("1", "2", "3")),
    Category("country_birth", ("1", "2", "3")),
    Category("edu_level", ("3", "0", "1", "2", "4", "5", "9")),
    Category("economic_status", ("111", "112", "120")),
    Category(
        "cur_eco_activity",
        ("138", "111", "122", "124", "131", "132", "133", "134", "135", "136", "137", "139", "200"),
    ),
    Category("Marital_status", ("2", "1", "3", "4")),
)


def dutch(directory: Path) -> Dataset:
    """Dutch census 2001: 60,420 rows; label: occupation of the higher levels (2_1)."""
    header, _, body = contents(directory / "dutch_census" / "dutch_census_2001.arff.gz").partition(b"@data")
    names = [line.split()[1].decode() for line in header.splitlines() if line.startswith(b"@attribute")]
    return encode(text_columns(body.strip() + b"\n", names), _DUTCH, Category("occupation", ("5_4_9", "2_1")))


# Readme.txt of the archive: codes, and weather divided by its maximum. At most 1,000 rentals an hour are assumed.
_BIKE = (
    *(Numeric(name, 0, 1) for name in ("yr", "holiday", "workingday", "temp", "atemp", "hum", "windspeed")),
    Numeric("season", 1, 4),
    Numeric("mnth", 1, 12),
    Numeric("hr", 0, 23),
    Numeric("weekday", 0, 6),
    Numeric("weathersit", 1, 4),
)


def bike(directory: Path) -> Dataset:
    """UCI 275 (hourly): 17,379 rows; label: rentals in the hour."""
    return encode(
        text_columns(contents(directory / "bike" / "Bike-Sharing-Dataset.zip", "hour.csv")),
        _BIKE,
        Numeric("cnt", 0, 1_000),
    )


# Lantz, Machine Learning with R, describes the columns: beneficiaries are under 65, four regions of the US; he prints
# a largest charge of 63,770. A body mass index is taken to be from 10 to 60.
_INSURANCE = (
    Numeric("age", 18, 64),
    Numeric("bmi", 10, 60),
    Numeric("children", 0, 5),
    Category("sex", ("female", "male")),
    Category("smoker", ("no", "yes")),
    Category("region", ("southeast", "southwest", "northwest", "northeast")),
)


def insurance(directory: Path) -> Dataset:
    """Lantz: 1,338 rows; label: charges in dollars."""
    return encode(
        text_columns(contents(directory / "insurance" / "insurance.csv")), _INSURANCE, Numeric("charges", 0.0, 65_000.0)
    )


# Hamidieh 2018, table 1: eight properties of the elements in a compound of at most 9, ten statistics of each. Ends of a
# property's scale over the elements: mass in u, first ionisation energy and electron affinity in kJ/mol, radius in pm,
# density in kg/m^3, fusion heat in kJ/mol, conductivity in W/(m K). Critical temperatures in K, below 200 in 2018.
_ELEMENTS = {
    "atomic_mass": (0.0, 210.0),
    "fie": (370.0, 1_700.0),
    "atomic_radius": (0.0, 300.0),
    "Density": (0.0, 22_600.0),
    "ElectronAffinity": (0.0, 350.0),
    "FusionHeat": (0.0, 105.0),
    "ThermalConductivity": (0.0, 430.0),
    "Valence": (0.0, 7.0),
}


def _superconductor_features() -> list[Numeric]:
    features = [Numeric("number_of_elements", 1, 9)]
    for name, (low, high) in _ELEMENTS.items():
        for weight in ("", "wtd_"):
            features += [Numeric(f"{weight}{mean}_{name}", low, high) for mean in ("mean", "gmean")]
            features += [
                Numeric(f"{weight}entropy_{name}", 0.0, math.log(9)),
                Numeric(f"{weight}range_{name}", 0.0, high),
                Numeric(f"{weight}std_{name}", 0.0, high / 2),
            ]
    return features


def superconductor(directory: Path) -> Dataset:
    """UCI 464 (features recomputed from the formulas): 21,263 rows; label: critical temperature."""
    from pyarrow import parquet

    data = contents(directory / "superconductor" / "superconductor_reconstructed_21263x82.parquet")
    table = parquet.read_table(BytesIO(data))
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return encode(columns, _superconductor_features(), Numeric("critical_temp", 0.0, 200.0))


# Readme.txt of the archive: the values that each parameter takes, and run times from 13.25 to 3397.08 ms, better
# taken as logarithms.
_SGEMM = (
    *(Numeric(name, 4, 7, np.log2) for name in ("MWG", "NWG")),
    Numeric("KWG", 4, 5, np.log2),
    *(Numeric(name, 3, 5, np.log2) for name in ("MDIMC", "NDIMC", "MDIMA", "NDIMB")),
    Numeric("KWI", 1, 3, np.log2),
    *(Numeric(name, 0, 3, np.log2) for name in ("VWM", "VWN")),
    *(Numeric(name, 0, 1) for name in ("STRM", "STRN", "SA", "SB")),
)


def gpu_sgemm(directory: Path) -> Dataset:
    """UCI 440: 241,600 rows; label: logarithm of the mean run time in ms."""
    table = text_columns(contents(directory / "gpu_sgemm" / "sgemm_product_dataset.zip", "sgemm_product.csv"))
    runs = [table[f"Run{i} (ms)"].astype(np.float64) for i in range(1, 5)]
    table["time"] = np.mean(runs, axis=0)
    return encode(table, _SGEMM, Numeric("time", math.log(13.25), math.log(3397.08), np.log))


# The package's notes: coinsurance is at most 100 per cent; incentive and deductible in dollars, as logarithms; health.
_RANDHIE = (
    Numeric("lncoins", 0, math.log(101)),
    Numeric("idp", 0, 1),
    Numeric("lpi", 0, math.log(1_500)),
    Numeric("fmde", 0, math.log(4_500)),
    Numeric("physlm", 0, 1),
    Numeric("disea", 0, 60),
    *(Numeric(name, 0, 1) for name in ("hlthg", "hlthf", "hlthp")),
)


def randhie() -> Dataset:
    """RAND health insurance experiment, with statsmodels: 20,190 rows; label: visits to a doctor, at most 80."""
    return encode(statsmodels_table("randhie"), _RANDHIE, Numeric("mdvis", 0, 80))


# The package's notes: the survey's codes.
_FAIR: tuple[Numeric | Category, ...] = (
    Numeric("rate_marriage", 1, 5),
    Numeric("age", 17.5, 42),
    Numeric("yrs_married", 0, 23),
    Numeric("children", 0, 5.5),
    Numeric("religious", 1, 4),
    Numeric("educ", 9, 20),
    *(Category(name, ("3.0", "1.0", "2.0", "4.0", "5.0", "6.0")) for name in ("occupation", "occupation_husb")),
)


def fair() -> Dataset:
    """Fair's survey of 1974, with statsmodels: 6,366 rows; label: any time spent in affairs."""
    table = statsmodels_table("fair")
    table["any_affair"] = np.where(table["affairs"] > 0, "yes", "no")
    return encode(table, _FAIR, Category("any_affair", ("no", "yes")))


# The extract has no column names. Its features, twelve timbre averages, come scaled to [0, 1]; the songs of the whole
# collection are of the years 1922 to 2011.
_MSD = tuple(Numeric(f"timbre_{i}", 0, 1) for i in range(1, 13))


def year_msd(directory: Path) -> Dataset:
    """MSD-12: 6,724 songs and 12 of 90 features of UCI 203 (YearPredictionMSD); label: year of release."""
    names = ("year", *(feature.name for feature in _MSD))
    table = text_columns(contents(directory / "year_msd" / "millionsong.txt.gz"), names)
    return encode(table, _MSD, Numeric("year", 1922, 2011))
