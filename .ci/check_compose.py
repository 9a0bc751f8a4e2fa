"""Checks a Compose file without Compose: it parses, and each service it refers to exists and can reach that state."""

import sys

import yaml


def faults(compose):
    services = compose["services"]
    for name, service in services.items():
        if not {"image", "build"} & service.keys():
            yield f"{name}: neither image nor build"
        for other, how in service.get("depends_on", {}).items():
            if other not in services:
                yield f"{name}: depends on {other}, which does not exist"
            elif how["condition"] == "service_healthy" and "healthcheck" not in services[other]:
                yield f"{name}: waits for {other} to be healthy, which has no health check"
        for mount in service.get("volumes", []):
            volume = mount.split(":")[0]
            if not volume.startswith((".", "/")) and volume not in compose.get("volumes", {}):
                yield f"{name}: mounts {volume}, which is not declared"


with open(sys.argv[1], encoding="utf-8") as file:
    found = list(faults(yaml.safe_load(file)))
for fault in found:
    print(fault, file=sys.stderr)
if found:
    sys.exit(1)
print("valid YAML, and its references hold; Compose itself is not here to ask")
