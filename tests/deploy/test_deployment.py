"""`deploy/`, as far as it can be checked without a cluster, a container daemon and systemd as init."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from farmwatch.__main__ import run
from farmwatch.config.config import Config
from farmwatch.config.settings import ConsoleSettings, MetricsSettings
from stream.schema.roles import Role
from tests.ops.promtool import promtool, tool
from tests.support.paths import DOCS, ROOT

DEPLOY = ROOT / "deploy"
OVERLAYS = ("small", "cluster")
KUBERNETES = "1.31"
EXPOSED_MOST = 2.0  # of 10, by systemd


@cache
def manifests(overlay: str) -> list[dict[str, Any]]:
    """The resources of an overlay and its base, merged as by kustomize."""
    return [one for file in _resources(DEPLOY / "kubernetes" / "overlays" / overlay) for one in _documents(file)]


def _resources(folder: Path) -> Iterator[Path]:
    for name in _documents(folder / "kustomization.yaml")[0]["resources"]:
        place = folder / name
        yield from _resources(place) if place.is_dir() else [place]


def _documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text()))


def services() -> dict[str, dict[str, Any]]:
    """The farmwatch services of the compose file."""
    found: dict[str, dict[str, Any]] = _documents(DEPLOY / "compose.yaml")[0]["services"]
    return {name: service for name, service in found.items() if "farmwatch" in service["image"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_manifests_have_the_schema_of_kubernetes(overlay: str) -> None:
    """Manifests match the schema of Kubernetes strictly; KEDA's kind has no schema in the package."""
    _validate(manifests(overlay))


def _validate(resources: list[dict[str, Any]]) -> None:
    import kubernetes_validate

    for one in resources:
        if one["kind"] != "ScaledObject":
            kubernetes_validate.validate(one, KUBERNETES, strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_are_nobody_and_write_to_their_volumes_alone(overlay: str) -> None:
    """Pods have no root user, no capability, no cluster token, and a read-only root file system."""
    pods = [one["spec"]["template"]["spec"] for one in manifests(overlay) if "template" in one.get("spec", {})]
    assert pods
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
        for container in pod["containers"]:
            wanted = {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["securityContext"] == wanted
    for name, service in services().items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_each_role_has_a_workload_that_is_asked_on_its_port() -> None:
    """Each role has a workload with its port, on Kubernetes and in the compose file; no other client is admitted."""
    settings = MetricsSettings()
    workloads = {one["metadata"]["name"]: one for one in manifests("cluster") if "template" in one.get("spec", {})}
    assert set(workloads) == {role.value for role in Role}
    for role in Role:
        (container,) = workloads[role.value]["spec"]["template"]["spec"]["containers"]
        assert container["args"][:4] == ["up", "--in-process", "--role", role.value]
        assert container["ports"][0] == {"name": role.value, "containerPort": settings.port_of(role)}
        assert len(container["ports"]) == 1 or role is Role.CONSOLE
        service = services()[role.value]
        assert service["command"][:4] == container["args"][:4]
        assert f":{settings.port_of(role)}/healthz" in service["healthcheck"]["test"][-1]
    ports = [settings.port_of(role) for role in Role]
    policy = next(one for one in manifests("small") if one["kind"] == "NetworkPolicy")
    assert policy["spec"]["ingress"] == [{"ports": [{"port": min(ports), "endPort": max(ports)}]}]


def test_the_console_is_reached_from_the_host_alone() -> None:
    """The pages have a port on the host's loopback; in a cluster a Service, and no network policy admits pods."""
    port = ConsoleSettings().port
    environment = next(line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("ENV "))
    assert "FARMWATCH_CONSOLE_HOST=0.0.0.0" in environment.split()
    for name, service in services().items():
        shows = name in ("farmwatch", "console")
        assert service.get("ports", []) == [f"127.0.0.1:{port}:{port}"] * shows, name
        assert ("FARMWATCH_CONSOLE_TOKEN" in service.get("environment", {})) == shows
    for overlay in OVERLAYS:
        found = [one for one in manifests(overlay) if f"'port': {port}" in str(one)]
        assert [one["kind"] for one in found] == ["Service"]


def test_each_profile_has_every_role_once() -> None:
    """A profile has one container with all names, or one per role; `gpu` has another SCORE, which requests a GPU."""
    every = {role.value for role in Role}
    found: dict[str, list[str]] = {}
    for name, service in services().items():
        names = service.get("networks", {}).get("default", {}).get("aliases", [name])
        for profile in service["profiles"]:
            found[profile] = found.get(profile, []) + names
        assert ("deploy" in service) == (service["profiles"] == ["gpu"])
    assert {profile: sorted(names) for profile, names in found.items()} == dict.fromkeys(
        ("embedded", "kafka", "gpu"), sorted(every)
    )
    head = (DEPLOY / "compose.yaml").read_text().partition("\nname:")[0]
    assert set(re.findall(r"--profile (\w+)", head)) == {"embedded", "kafka", "gpu", "observability"}


def test_pods_are_added_for_what_waits() -> None:
    """Pods are added for the waiting records of a role in the live run, up to the number of partitions."""
    scaled = {one["metadata"]["name"]: one["spec"] for one in manifests("cluster") if one["kind"] == "ScaledObject"}
    kinds = {one["metadata"]["name"]: one["kind"] for one in manifests("cluster") if "template" in one.get("spec", {})}
    assert set(scaled) == {"measure", "judge", "score"}
    for role, spec in scaled.items():
        (trigger,) = spec["triggers"]
        assert (trigger["type"], trigger["metadata"]["ignoreNullValues"]) == ("prometheus", "false")
        assert f'farmwatch_log_lag_records{{role="{role}"' in trigger["metadata"]["query"]
        assert spec["maxReplicaCount"] == Config().log.partitions
        assert spec["scaleTargetRef"] == {"kind": kinds[role], "name": role}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_prometheus_finds_each_role_in_the_cluster(overlay: str, tmp_path: Path) -> None:
    """Prometheus makes the labels that the rules need from the pods' labels and ports in Kubernetes.

    Debian's build has no discovery in Kubernetes, so that its targets are given here.
    """
    (job,) = _documents(DEPLOY / "prometheus" / "kubernetes.yml")[0]["scrape_configs"]
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    told = [target for one in manifests(overlay) if "template" in one.get("spec", {}) for target in _discovered(one)]
    other = {"__meta_kubernetes_pod_label_app_kubernetes_io_name": "other", "__meta_kubernetes_pod_phase": "Running"}
    ended = [{**one["labels"], "__meta_kubernetes_pod_phase": "Failed"} for one in told]
    job["static_configs"] = [*told, *({"targets": ["10.9.9.9:1"], "labels": one} for one in (other, *ended))]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [job]}))
    assert promtool("check", "config", tmp_path / "prometheus.yml").returncode == 0
    found = promtool("check", "service-discovery", "--timeout=1s", tmp_path / "prometheus.yml", "farmwatch").stdout
    kept = [one["labels"] for one in json.loads(found[found.index("[") :]) if one.get("labels")]
    assert {(one["job"], one["role"], one["__address__"].rpartition(":")[2]) for one in kept} == {
        ("farmwatch", role.value, str(MetricsSettings().port_of(role))) for role in Role
    }
    assert {one["instance"] for one in kept} == {one["labels"]["__meta_kubernetes_pod_name"] for one in told}


def _discovered(workload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    template = workload["spec"]["template"]
    name = {"__meta_kubernetes_pod_name": f"{workload['metadata']['name']}-0", "__meta_kubernetes_pod_phase": "Running"}
    labels = {
        f"__meta_kubernetes_pod_label_{re.sub(r'[^a-zA-Z0-9_]', '_', label)}": value
        for label, value in template["metadata"]["labels"].items()
    }
    for port in template["spec"]["containers"][0]["ports"]:
        known = {**name, **labels, "__meta_kubernetes_pod_container_port_name": port["name"]}
        yield {"targets": [f"10.0.0.1:{port['containerPort']}"], "labels": known}


def test_the_crawler_cannot_reach_the_cluster() -> None:
    """CRAWL's pods may reach all but private addresses; they have the label for it, and no other pods do."""
    crawler = next(one for one in manifests("cluster") if one["metadata"]["name"] == "farmwatch-crawler")
    blocks = [to["ipBlock"] for rule in crawler["spec"]["egress"] for to in rule["to"]]
    private = {
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",
        "127.0.0.0/8",
        "fc00::/7",
        "fe80::/10",
    }
    assert private <= {network for block in blocks for network in block["except"]}
    wanted = crawler["spec"]["podSelector"]["matchLabels"]
    for one in manifests("cluster"):
        if "template" in one.get("spec", {}):
            labels = one["spec"]["template"]["metadata"]["labels"]
            assert (wanted.items() <= labels.items()) == (one["metadata"]["name"] == "crawl")


@pytest.mark.parametrize("file", sorted(DEPLOY.rglob("farmwatch.toml")), ids=lambda file: file.parent.name)
def test_the_configurations_name_settings_that_exist(file: Path) -> None:
    """`farmwatch doctor config` accepts each configuration."""
    assert run(["doctor", "config", "--config", str(file)]) == 0


def test_units_link_to_a_page_that_exists() -> None:
    """Units link to an existing page of this documentation."""
    for unit in (DEPLOY / "systemd").glob("farmwatch*"):
        for page in re.findall(r"^Documentation=\S+?/docs/(\S+)$", unit.read_text(), re.MULTILINE):
            assert (DOCS / page).is_file(), (unit.name, page)
    assert "\nDocumentation=" in (DEPLOY / "systemd" / "farmwatch@.service").read_text()


def systemd_units(folder: Path) -> list[Path]:
    """The units, with an existing program, and SCORE's drop-in for a GPU."""
    for unit in (DEPLOY / "systemd").iterdir():
        place = folder / ("farmwatch@score.service.d" if unit.suffix == ".conf" else "")
        place.mkdir(exist_ok=True)
        text = unit.read_text().replace("/opt/farmwatch/bin/farmwatch", sys.executable)
        (place / unit.name).write_text(text)
    return [folder / "farmwatch.target", folder / "farmwatch@.service"]


def systemd_analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Debian's systemd-analyze with the libraries and units unpacked next to it."""
    program = tool("systemd-analyze")
    unpacked = program.parents[2]
    folders = [folder for lib in ("lib", "usr/lib") for folder in sorted(unpacked.glob(f"{lib}/*-linux-gnu"))]
    libraries = ":".join(str(place) for folder in folders for place in (folder, folder / "systemd"))
    env = {**os.environ, "LD_LIBRARY_PATH": libraries, "SYSTEMD_UNIT_PATH": f"{unpacked}/lib/systemd/system"}
    return subprocess.run([program, *arguments], env=env, capture_output=True, text=True, check=False)


def test_systemd_units_are_clean_and_closed(tmp_path: Path) -> None:
    """`systemd-analyze verify` reports nothing, and `security` finds few unneeded permissions."""
    units = systemd_units(tmp_path)
    verified = systemd_analyze("verify", *units)
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    score = re.search(
        r"exposure level for \S+: ([\d.]+)", systemd_analyze("security", "--offline=true", units[1]).stdout
    )
    assert score is not None and float(score[1]) <= EXPOSED_MOST
    assert {f"farmwatch@{role.value}.service" for role in Role} == set(
        re.findall(r"farmwatch@\w+\.service", units[0].read_text())
    )


def test_a_wrong_word_in_the_drop_in_of_a_card_is_seen(tmp_path: Path) -> None:
    """A wrong word in the drop-in for a GPU is named by systemd, which reads it with the unit."""
    units = systemd_units(tmp_path)
    drop_in = tmp_path / "farmwatch@score.service.d" / "gpu.conf"
    drop_in.write_text(drop_in.read_text().replace("PrivateDevices=", "PrivateDevice="))
    assert "PrivateDevice" in systemd_analyze("verify", *units).stderr


@pytest.mark.image
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomize_renders(overlay: str) -> None:
    """kustomize itself builds the overlay, with the configuration as a Secret, and the result matches the schemas."""
    kustomize = _tool("kustomize")
    made = subprocess.run(
        [kustomize, "build", DEPLOY / "kubernetes" / "overlays" / overlay], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    rendered = list(yaml.safe_load_all(made.stdout))
    assert {one["kind"] for one in rendered} == {one["kind"] for one in manifests(overlay)} | {"Secret"}
    _validate(rendered)


@pytest.mark.image
def test_the_compose_file_is_read_by_compose(tmp_path: Path) -> None:
    """The library of Docker Compose reads the compose file and refuses a service with an unknown key."""
    compose = _tool("compose-go")
    file = DEPLOY / "compose.yaml"
    read = subprocess.run([compose, file], capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    wrong = tmp_path / "compose.yaml"
    wrong.write_text(file.read_text().replace("read_only: true", "readonly: true"))
    assert subprocess.run([compose, wrong], capture_output=True, check=False).returncode != 0


def _tool(name: str) -> Path:
    tool = ROOT / ".tools" / name
    if not tool.exists():
        pytest.skip(f"{name} is not here: make image builds it with Go")
    return tool
