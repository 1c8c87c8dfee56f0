"""Translate the public cases of other flag services into rules: ``cases.json`` beside this file.

``python -m tests.conformance.flags.translation FOLDER`` reads copies of three repositories below
FOLDER: ``Unleash/client-specification``, ``open-feature/flagd-testbed`` and
``Flagsmith/engine-test-data``. Only facts are kept: the rules, the context, the expected value.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("cases.json")
NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
SOURCES = {
    "unleash": "Unleash/client-specification, Apache-2.0",
    "flagd": "open-feature/flagd-testbed, facts only",
    "flagsmith": "Flagsmith/engine-test-data, facts only",
}
Case = dict[str, Any]


class NotExpressible(Exception):
    """The model of rules lacks what the message names."""


def compare(name: str, op: str, value: Any) -> Case:
    if not NAME.fullmatch(name):
        raise NotExpressible("names of attributes beyond letters, digits, _ and -")
    return {"attribute": f"context.{name}", "op": op, "value": value}


def every(parts: list[Case]) -> Case:
    return parts[0] if len(parts) == 1 else {"all": parts}


def some(parts: list[Case]) -> Case:
    return parts[0] if len(parts) == 1 else {"any": parts}


ALWAYS = compare("never", "exists", False)
NEVER = compare("never", "exists", True)


def number(text: Any) -> Any:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return text
    return value if value == value and abs(value) != float("inf") else text


# Unleash


def unleash(folder: Path) -> Iterator[tuple[str, Any]]:
    for path in sorted((folder / "specifications").glob("[0-9]*.json")):
        document = json.loads(path.read_text())
        features = {one["name"]: one for one in document["state"].get("features", ())}
        segments = {one["id"]: one for one in document["state"].get("segments", ())}
        for place, test in enumerate(document.get("tests", ())):
            yield f"{path.stem} {place}", partial(unleash_case, features, segments, test)
        for place, test in enumerate(document.get("variantTests", ())):
            yield (
                f"{path.stem} variant {place}",
                partial(unleash_variant, features, segments, test),
            )


def unleash_case(features: Case, segments: Case, test: Case) -> Case:
    feature = features.get(test["toggleName"])
    if feature is None:
        raise NotExpressible("flags that no list of flags has, and updates of such lists")
    if feature.get("dependencies"):
        raise NotExpressible("a flag that depends on another flag")
    context = flat(test["context"])
    rules = unleash_rules(feature, segments, context) if feature["enabled"] else []
    has_strategies = bool(feature.get("strategies"))
    default = feature["enabled"] and not has_strategies
    return case(rules, default, context, test["expectedResult"])


def unleash_variant(features: Case, segments: Case, test: Case) -> Case:
    feature = features.get(test["toggleName"])
    if feature is None or feature.get("dependencies"):
        return unleash_case(features, segments, test)
    found = feature.get("variants") or []
    given = [one.get("variants") or found for one in feature.get("strategies", ())] or [found]
    if feature["enabled"] and any(
        sum(each["weight"] > 0 for each in variants) > 1 for variants in given
    ):
        raise NotExpressible("values by weight, by the bucket of another hash")
    if any(each.get("overrides") for variants in given for each in variants):
        raise NotExpressible("values by weight, by the bucket of another hash")
    context = flat(test["context"])
    rules = unleash_rules(feature, segments, context) if feature["enabled"] else []
    names = [
        next((each["name"] for each in one if each["weight"] > 0), "disabled") for one in given
    ]
    for rule, name in zip(rules, names, strict=False):
        rule["value"] = name
    default = names[0] if feature["enabled"] and not feature.get("strategies") else "disabled"
    return case(rules, default, context, test["expectedResult"]["name"])


def flat(context: Case) -> Case:
    return {
        **{k: v for k, v in context.items() if k != "properties"},
        **context.get("properties", {}),
    }


def unleash_rules(feature: Case, segments: Case, context: Case) -> list[Case]:
    rules = []
    for place, strategy in enumerate(feature.get("strategies", ())):
        constraints = [*(strategy.get("constraints") or ())]
        parts = []
        for segment in strategy.get("segments", ()):
            if segment in segments:
                constraints += segments[segment]["constraints"]
            else:
                parts.append(NEVER)
        parts += [unleash_strategy(strategy)]
        parts += [unleash_constraint(one, context) for one in constraints]
        rules.append({"name": str(place), "when": every(parts), "value": True})
    return rules


def unleash_strategy(strategy: Case) -> Case:
    parameters = strategy.get("parameters") or {}
    percent = parameters.get("rollout", parameters.get("percentage"))
    match strategy["name"]:
        case "default":
            return ALWAYS
        case "userWithId":
            ids = [one.strip() for one in parameters.get("userIds", "").split(",")]
            return compare("userId", "in", ids)
        case "remoteAddress":
            addresses = [one.strip() for one in parameters.get("IPs", "").split(",")]
            if any("/" in one for one in addresses):
                raise NotExpressible("networks of addresses")
            return compare("remoteAddress", "in", addresses)
    if str(percent) in ("0", "100"):
        sticky = parameters.get("stickiness", "default")
        named = {"gradualRolloutUserId": "userId", "gradualRolloutSessionId": "sessionId"}
        sticky = named.get(strategy["name"], sticky)
        if str(percent) == "0":
            return NEVER
        return ALWAYS if sticky in ("default", "random") else compare(sticky, "exists", True)
    if percent is None:
        return NEVER  # a strategy that the client does not know
    raise NotExpressible("percentages by the buckets of another hash")


def unleash_constraint(one: Case, context: Case) -> Case:
    name, op = one["contextName"], one["operator"]
    values = one.get("values") or []
    found = unleash_comparison(name, op, one, values, context)
    return {"not": found} if one.get("inverted") else found


def unleash_comparison(name: str, op: str, one: Case, values: list, context: Case) -> Case:
    if op == "REGEX":
        raise NotExpressible("regular expressions")
    if op == "IN_CIDR":
        raise NotExpressible("networks of addresses")
    if op == "STR_CONTAINS":
        raise NotExpressible("a part of a text that is neither its start nor its end")
    if op.startswith("STR_") and one.get("caseInsensitive"):
        raise NotExpressible("comparisons that ignore case")
    if op in ("IN", "NOT_IN"):
        if not values:
            return NEVER if op == "IN" else ALWAYS
        return compare(name, op.lower(), values)
    if op in ("STR_STARTS_WITH", "STR_ENDS_WITH"):
        kind = "prefix" if op == "STR_STARTS_WITH" else "suffix"
        return some([compare(name, kind, value) for value in values])
    value = one.get("value")
    if op.startswith("NUM_"):
        context[name] = number(context.get(name))
        wanted = number(value)
        if isinstance(wanted, str) or wanted is None:
            return NEVER
        kinds = {"EQ": "eq", "GT": "gt", "GTE": "ge", "LT": "lt", "LTE": "le"}
        return compare(name, kinds[op[4:]], wanted)
    if op.startswith("DATE_"):
        return compare(name, op[5:].lower(), value)
    if op.startswith("SEMVER_"):
        if not re.fullmatch(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", str(value)):
            return NEVER
        parts = []
        if op[7:9] in ("GT", "LT"):
            parts.append(compare(name, f"semver_{op[7:9].lower()}", value))
        if op.endswith(("EQ", "GTE", "LTE")):
            parts.append(compare(name, "eq", value))
        return some(parts)
    return NEVER  # an operator that the client does not know


# Flagsmith


def flagsmith(folder: Path) -> Iterator[tuple[str, Any]]:
    for path in sorted((folder / "test_cases").iterdir()):
        text = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
        document = json.loads(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
        context, result = document["context"], document["result"]
        segments = list(context.get("segments", {}).values())
        for name, expected in result["flags"].items():
            yield (
                f"{path.stem} {name}",
                lambda c=context, s=segments, n=name, e=expected: flagsmith_flag(c, s, n, e),
            )
        if not result["flags"]:
            matched = {one["name"] for one in result["segments"]}
            for segment in segments:
                yield (
                    f"{path.stem} {segment['name']}",
                    lambda c=context, s=segment, m=matched: flagsmith_segment(c, s, m),
                )


def flagsmith_flag(context: Case, segments: list[Case], name: str, expected: Case) -> Case:
    feature = next(one for one in context["features"].values() if one["name"] == name)
    facts = flagsmith_facts(context)
    overrides = [
        (override.get("priority", float("inf")), segment, override)
        for segment in segments
        for override in segment.get("overrides", ())
        if override["name"] == name
    ]
    overrides.sort(key=lambda one: one[0])
    rules = [
        {
            "name": str(place),
            "when": flagsmith_rules(segment, facts),
            "value": {"enabled": override["enabled"], "value": override["value"]},
        }
        for place, (_, segment, override) in enumerate(overrides)
    ]
    if feature.get("variants") and context.get("identity"):
        raise NotExpressible("values by weight, by the bucket of another hash")
    default = {"enabled": feature["enabled"], "value": feature["value"]}
    wanted = {"enabled": expected["enabled"], "value": expected["value"]}
    return case(rules, default, facts, wanted)


def flagsmith_segment(context: Case, segment: Case, matched: set[str]) -> Case:
    facts = flagsmith_facts(context)
    rules = [{"name": "0", "when": flagsmith_rules(segment, facts), "value": True}]
    return case(rules, False, facts, segment["name"] in matched)


def flagsmith_facts(context: Case) -> Case:
    identity = context.get("identity") or {}
    facts = {f"_{name}": identity[name] for name in ("identifier", "key") if name in identity}
    facts |= {f"_environment_{name}": value for name, value in context["environment"].items()}
    return {**facts, **(identity.get("traits") or {})}


def flagsmith_rules(segment: Case, facts: Case) -> Case:
    if not segment["rules"]:
        return NEVER
    return every([flagsmith_rule(rule, facts) for rule in segment["rules"]])


def flagsmith_rule(rule: Case, facts: Case) -> Case:
    parts = [flagsmith_condition(one, facts) for one in rule.get("conditions") or ()]
    parts += [flagsmith_rule(one, facts) for one in rule.get("rules") or ()]
    joined = some(parts or [ALWAYS]) if rule["type"] != "ALL" else every(parts or [ALWAYS])
    return {"not": joined} if rule["type"] == "NONE" else joined


PATHS = {
    "$.identity.identifier": "_identifier",
    "$.identity.key": "_key",
    "$.environment.name": "_environment_name",
    "$.environment.key": "_environment_key",
}


def flagsmith_condition(one: Case, facts: Case) -> Case:
    op, value, name = one["operator"], one.get("value"), one.get("property") or ""
    lacking = {
        "PERCENTAGE_SPLIT": "percentages by the buckets of another hash",
        "MODULO": "remainders of a division",
        "REGEX": "regular expressions",
        "CONTAINS": "a part of a text that is neither its start nor its end",
        "NOT_CONTAINS": "a part of a text that is neither its start nor its end",
    }
    if op in lacking:
        raise NotExpressible(lacking[op])
    if name.startswith("$.") and name not in facts:
        if name not in PATHS:
            raise NotExpressible("paths into the context")
        name = PATHS[name]
    have = facts.get(name)
    if op in ("IS_SET", "IS_NOT_SET"):
        return compare(name, "exists", op == "IS_SET")
    if op == "IN":
        if isinstance(value, str):
            try:
                listed = json.loads(value)
            except ValueError:
                listed = None
            value = listed if isinstance(listed, list) else value.split(",")
        have = None if isinstance(have, bool) else have
        listed = [typed(str(each), have) for each in value]
        return compare(name, "in", listed) if listed else NEVER
    if str(value).endswith(":semver"):
        version = str(value).removesuffix(":semver")
        kinds = {"GREATER_THAN": ["semver_gt"], "LESS_THAN": ["semver_lt"], "EQUAL": ["eq"]}
        kinds["GREATER_THAN_INCLUSIVE"], kinds["LESS_THAN_INCLUSIVE"] = (
            ["semver_gt", "eq"],
            ["semver_lt", "eq"],
        )
        if op == "NOT_EQUAL":
            return every([compare(name, "exists", True), compare(name, "ne", version)])
        return some([compare(name, kind, version) for kind in kinds[op]])
    wanted = typed(value, have)
    if op == "EQUAL":
        return compare(name, "eq", wanted)
    if op == "NOT_EQUAL":
        return every([compare(name, "exists", True), compare(name, "ne", wanted)])
    kinds = {"GREATER_THAN": "gt", "GREATER_THAN_INCLUSIVE": "ge"}
    kinds |= {"LESS_THAN": "lt", "LESS_THAN_INCLUSIVE": "le"}
    if have is not None and not isinstance(have, int | float):
        raise NotExpressible("the order of texts")
    bound = number(value)
    return NEVER if isinstance(bound, str) else compare(name, kinds[op], bound)


def typed(value: Any, have: Any) -> Any:
    """The value of a condition as the type of the trait, as Flagsmith converts it."""
    if isinstance(have, bool):
        return {"true": True, "1": True, "false": False}.get(str(value).lower(), str(value))
    if isinstance(have, int | float):
        return number(value)
    return str(value)


# flagd


def flagd(folder: Path) -> Iterator[tuple[str, Any]]:
    evaluated = [*sorted((folder / "evaluator/gherkin").glob("*.feature"))]
    for path in [*evaluated, folder / "gherkin/targeting.feature"]:
        known: Case = {"flags": {}, "$evaluators": {}}
        for listed in sorted((path.parent.parent / "flags").glob("*.json")):
            document = json.loads(listed.read_text())
            known["flags"] |= document.get("flags", {})
            known["$evaluators"] |= document.get("$evaluators", {})
        for place, steps in enumerate(scenarios(path.read_text())):
            name = f"{path.parent.parent.name} {path.stem} {place}"
            yield name, lambda d=known, s=steps: flagd_case(d, s)


def scenarios(text: str) -> Iterator[list[str]]:
    """The steps of each scenario, once for each row of its examples."""
    background: list[str] = []
    steps, rows, header, tags, kind = [], [], None, "", ""
    of_rows = ""

    def finished() -> Iterator[list[str]]:
        if kind == "outline":
            for row in rows:
                yield [*background, *(replaced(step, row) for step in steps), row["tags"]]
        elif kind == "scenario":
            yield [*background, *steps]

    for line in map(str.strip, text.splitlines()):
        word = line.split(":")[0]
        if line.startswith("@"):
            tags = line
        elif word in ("Scenario", "Scenario Outline", "Background"):
            yield from finished()
            if kind == "background":
                background = steps
            kind = {"Scenario": "scenario", "Background": "background"}.get(word, "outline")
            steps, rows, header, tags, of_rows = [], [], None, "", ""
        elif word == "Examples":
            header = None
            of_rows, tags = tags, ""
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if header is None:
                header = cells
            else:
                rows.append({**dict(zip(header, cells, strict=True)), "tags": of_rows})
        elif line.split(" ")[0] in ("Given", "And", "When", "Then", "But"):
            steps.append(line)
    yield from finished()


def replaced(step: str, row: dict[str, str]) -> str:
    return re.sub(r"<([^>]+)>", lambda match: row[match[1]], step)


def flagd_case(document: Case, steps: list[str]) -> Case:
    text = "\n".join(steps)
    if "@fractional-v1" in text or "@fractional-v2" in text:
        raise NotExpressible("buckets of flagd's earlier hashes")
    key = re.search(r'flag with key "([^"]*)"', text)
    wanted = re.search(r'details value should be "(.*)"$', text, re.MULTILINE)
    if key is None or wanted is None or key[1] not in document["flags"]:
        raise NotExpressible("errors, metadata and states of another protocol")
    flag = document["flags"][key[1]]
    context: Case = {}
    for name, kind, value in re.findall(
        r'containing a key "([^"]*)", with type "(\w+)" and with value "([^"]*)"', text
    ):
        try:
            context[name] = value if kind == "String" else json.loads(value.lower())
        except ValueError:
            raise NotExpressible("attributes that are objects") from None
    if found := re.search(r'targeting key with value "([^"]*)"', text):
        context["targetingKey"] = found[1]
    if found := re.search(r'outer key "user" and inner key "name", with value "([^"]*)"', text):
        context["targetingKey"] = found[1]  # the text that the flag puts into a bucket
    if flag.get("state") == "DISABLED":
        raise NotExpressible("flags that are switched off, with the caller's value")
    if not flag.get("defaultVariant"):
        raise NotExpressible("flags without a value of their own")
    targeting = expanded(flag.get("targeting"), document["$evaluators"])
    rules = list(flagd_rules(targeting, flag["variants"], key[1]))
    default = flag["variants"][flag["defaultVariant"]]
    expected = wanted[1].replace('\\"', '"')
    if not isinstance(default, str):
        expected = json.loads(expected)
    if isinstance(context.get("version"), int | float):
        raise NotExpressible("numbers as versions")
    named = [{"name": str(place), **rule} for place, rule in enumerate(rules)]
    return case(named, default, context, expected)


def expanded(logic: Any, evaluators: Case) -> Any:
    if isinstance(logic, dict):
        if "$ref" in logic:
            if logic["$ref"] not in evaluators:
                raise NotExpressible("references to nothing")
            return evaluators[logic["$ref"]]
        return {name: expanded(part, evaluators) for name, part in logic.items()}
    return [expanded(part, evaluators) for part in logic] if isinstance(logic, list) else logic


def flagd_rules(logic: Any, variants: Case, key: str) -> Iterator[Case]:
    """The rules of a targeting: a chain of conditions, or one ``fractional``."""
    if logic is None:
        return
    if isinstance(logic, str):
        yield {"when": ALWAYS, "value": variants[logic]}
    elif "if" in logic:
        condition, value, *rest = logic["if"]
        if isinstance(value, str) and value not in variants:
            raise NotExpressible("names of values that the flag does not have")
        if not isinstance(value, str) or not isinstance(condition, dict):
            raise NotExpressible("conditions inside of conditions")
        yield {"when": flagd_condition(condition), "value": variants[value]}
        yield from flagd_rules(rest[0] if rest else None, variants, key)
    elif "fractional" in logic:
        by, *parts = logic["fractional"]
        salt = by["cat"][0] if isinstance(by, dict) and "cat" in by else None
        if salt is None:
            raise NotExpressible("buckets without a salt, or by other logic")
        if len(by["cat"]) != 2 or any(len(part) != 2 for part in parts):
            raise NotExpressible("buckets without a salt, or by other logic")
        salt = key if salt == {"var": "$flagd.flagKey"} else salt
        total, start = sum(weight for _, weight in parts), 0
        for variant, weight in parts:
            start += weight
            rollout = {"by": "user", "percent": start * 100 / total, "salt": salt}
            yield {"rollout": rollout, "value": variants[variant]}
    else:
        raise NotExpressible("conditions whose result is the name of a value")


def flagd_condition(logic: Case) -> Case:
    [(op, parts)] = logic.items()
    if not isinstance(parts, list) or not any(isinstance(each, dict) for each in parts[:2]):
        raise NotExpressible("conditions that are not valid")
    if op == "fractional" or op not in ("==", "starts_with", "ends_with", "sem_ver"):
        raise NotExpressible("buckets without a salt, or by other logic")
    if op == "==":
        have, value = parts if isinstance(parts[0], dict) else reversed(parts)
        return compare(named(have), "eq", value)
    if op == "sem_ver":
        have, sign, version = parts
        if sign in (">", "<"):
            return compare(named(have), f"semver_{'gt' if sign == '>' else 'lt'}", version)
        if sign == "=" and re.fullmatch(r"\d+\.\d+\.\d+", version):
            return compare(named(have), "eq", version)
        raise NotExpressible("ranges of versions, and equal versions that are written otherwise")
    have, value = parts
    return compare(named(have), "prefix" if op == "starts_with" else "suffix", value)


def named(var: Case) -> str:
    name = var.get("var") if isinstance(var, dict) else None
    name = name[0] if isinstance(name, list) else name
    if not isinstance(name, str):
        raise NotExpressible("conditions inside of conditions")
    return name


# All


def case(rules: list[Case], default: Any, context: Case, expected: Any) -> Case:
    return {"rules": rules, "default": default, "context": context, "expected": expected}


def main(folder: Path) -> None:
    found: dict[str, Any] = {"sources": SOURCES, "cases": [], "total": {}, "not_expressible": {}}
    for source, translate in (("unleash", unleash), ("flagd", flagd), ("flagsmith", flagsmith)):
        total, lacking = 0, Counter[str]()
        for name, make in translate(folder / SOURCES[source].split(",")[0]):
            total += 1
            try:
                found["cases"].append({"source": source, "name": name, **make()})
            except NotExpressible as reason:
                lacking[str(reason)] += 1
        found["total"][source] = total
        found["not_expressible"][source] = dict(lacking.most_common())
    cases = ",\n".join(json.dumps(one, sort_keys=True) for one in found.pop("cases"))
    head = json.dumps(found, indent=1, sort_keys=True).removesuffix("\n}")
    CASES.write_text(f'{head},\n "cases": [\n{cases}\n]}}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
