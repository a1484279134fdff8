"""Makes a job from Submarine's `job run`, 0.1 to 0.4: from its options, its YAML file, and its two runtimes.

`options` reads the command line, `yaml_file` the file of -f, and `option_values` the values of single options.
`runtimes` makes the roles of a YARN service or of TonY. docs/coming-from-submarine.md lists the differences.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from howdah.compat import Parsed
from howdah.compat.submarine import launch, option_values, runtimes
from howdah.compat.submarine.options import SubmarineOptions, kind_of_task, parse_options
from howdah.errors import SpecError
from howdah.spec import JobSpec
from howdah.spec.containers import PREFIX, requested_image, runtime_variables
from howdah.spec.validation import nearest

FRAMEWORKS = ("tensorflow", "pytorch", "mxnet")
_NEW = "org.apache.submarine.client.cli.Cli"
_MOUNTS = f"{PREFIX}DOCKER_MOUNTS"


def split_java_command(argv: Sequence[str]) -> tuple[str, list[str]]:
    """Return the Java class that was called ("" for none), and the words after it. Java's options, or a jar before the
    class, are left out: scripts keep those words when their `java`, or `yarn jar`, becomes `howdah submarine`."""
    rest = list(argv)
    before = rest[: rest.index("job")] if "job" in rest else rest
    name = next((word for word in before if word.rpartition(".")[2] == "Cli"), "")
    if name:
        return name, rest[rest.index(name) + 1 :]
    return "", rest[1:] if rest and rest[0].endswith(".jar") else rest


class Submarine:
    """Reads `job run`. Files and paths are relative to `directory`, by default the current directory. `hadoop` is the
    directory of Hadoop's configuration; `home` overrides where that configuration puts the user's files."""

    def __init__(
        self,
        directory: Path | None = None,
        environ: Mapping[str, str] | None = None,
        hadoop: str = "",
        home: str = "",
    ) -> None:
        self.directory, self.environ = directory or Path.cwd(), os.environ if environ is None else environ
        self.hadoop, self.home = hadoop, home

    def parse(self, argv: Sequence[str]) -> Parsed:
        return self.job(self.read(argv))

    def read(self, argv: Sequence[str]) -> SubmarineOptions:
        """Return the options of `job run …`, including those of its YAML file.

        Raises:
            SpecError, StagingError: the words are not `job run`, or the file is wrong.
        """
        name, rest = split_java_command(argv)
        if rest[:2] != ["job", "run"]:
            raise SpecError.at(" ".join(rest[:2]) or "job run", "is missing" if not rest else "is not job run")
        options = parse_options(rest[2:])
        if options.text("f"):
            from howdah.compat.submarine import yaml_file  # YAML is slow to import

            yaml_file.add(options, self.directory)
        options.misread = bool(options.mistakes)
        if runtimes.wants_tony(options) or self._is_tony(name):
            options.runtime = "tony"
        return options

    def job(self, options: SubmarineOptions) -> Parsed:
        """Return the job that these options describe.

        Raises:
            SpecError: everything that is wrong with them.
        """
        self._check(options)
        commands = launch.commands(options, lambda: self._home(options))
        if options.mistakes:
            raise SpecError(options.mistakes)
        by_tony = options.runtime == "tony" or options.text("framework").lower() == "mxnet"
        if by_tony and commands.roles:
            parsed = runtimes.tony_job(options, commands, self.directory, self.environ, self.hadoop)
        else:
            parsed = Parsed(runtimes.service_job(options, commands))
        if by_tony and not commands.roles:  # TensorBoard alone
            options.notes += [f"--conf {text}: has no effect, there is no task" for text in options.get_list("conf")]
        job = _with_variables(options, launch.with_board(options, parsed.job, commands))
        job = _with_files(options, _with_mounts(options, job))
        job = replace(job, links=launch.links(options, job, commands))
        if options.mistakes:
            raise SpecError(options.mistakes)
        variables = self._login(options)
        notes = (*options.notes, *parsed.notes, *runtimes.notes(options, job))
        origins = {**parsed.origins, **launch.origins(options, job)}
        return Parsed(job, origins, tuple(dict.fromkeys(notes)), variables)

    def _check(self, options: SubmarineOptions) -> None:
        framework = options.text("framework", FRAMEWORKS[0]).lower()
        if framework not in FRAMEWORKS:
            options.wrong("framework", f"is {framework!r}, must be one of {', '.join(FRAMEWORKS)}")
            options.mistakes[-1] = replace(options.mistakes[-1], nearest=nearest(framework, FRAMEWORKS))
        if not options.text("name"):
            options.absent("name", ": give the job a name")
        for one, other in (("keytab", "principal"), ("principal", "keytab")):
            if options.text(one) and not options.text(other):
                options.wrong(one, f"is given without the {other}: give both")
        keytab = options.text("keytab")
        is_file = os.path.isfile(self.directory / keytab)  # noqa: PTH113 - False also for a name that no file can have
        if keytab and not is_file:
            options.wrong("keytab", f"is {keytab!r}: no such file on this machine")

    def _login(self, options: SubmarineOptions) -> Mapping[str, str]:
        """Make the job log in to Kerberos by the keytab, in this process alone; the user's ticket is not touched."""
        if options.given("distribute_keytab"):
            options.notes.append("--distribute_keytab: the keytab stays here, tasks get tokens of HDFS instead")
        if not options.text("keytab") or options.given("insecure"):
            return {}
        keytab = (self.directory / options.text("keytab")).absolute()
        return {"KRB5_CLIENT_KTNAME": f"FILE:{keytab}", "KRB5CCNAME": "MEMORY:howdah"}

    def _home(self, options: SubmarineOptions) -> str:
        """Return the directory of the user's files: on the cluster, or on this machine if there is no cluster."""
        if not self.home:
            from howdah.hadoop import conf as hadoop_conf  # most command lines name all their paths
            from howdah.hadoop import identity

            conf = hadoop_conf.load(hadoop_conf.directory(self.hadoop))
            root = hadoop_conf.default_filesystem(conf)
            principal = options.text("principal") if identity.is_secure(conf) else ""
            user = re.split("[/@]", principal, maxsplit=1)[0]
            self.home = str(self.directory) if root.startswith("file:") else hadoop_conf.home(conf, root, user)
        return self.home

    def _is_tony(self, name: str) -> bool:
        """Return whether the runtime is TonY's. `submarine.xml`, later `submarine-site.xml`, beside Hadoop's own files
        sets the runtime. Otherwise the class `name` decides, because the class of 0.3 and later has no other
        runtime."""
        from howdah.hadoop import conf as hadoop_conf

        hadoop = hadoop_conf.directory(self.hadoop)
        sites = [Path(hadoop, name) for name in ("submarine.xml", "submarine-site.xml")] if hadoop else []
        raw, _ = hadoop_conf.merge(sites)
        return "tony" in raw.get("submarine.runtime.class", "tony" if name == _NEW else "").lower()


def _with_variables(options: SubmarineOptions, job: JobSpec) -> JobSpec:
    env = option_values.variables(options, "env")
    inside = {name.removeprefix("DOCKER_"): value for name, value in env.items() if name.startswith("DOCKER_")}
    environment = job.environment
    if options.text("docker_image"):
        environment = replace(environment, image=options.text("docker_image"))
    roles = dict(job.roles)
    for name, role in () if options.given("legacy") else job.roles.items():
        below = option_values.variables(options, f"{kind_of_task(name)}.env")
        roles[name] = replace(role, env={**role.env, **below})
    return replace(job, roles=roles, env={**job.env, **inside, **env}, environment=environment)


def _with_mounts(options: SubmarineOptions, job: JobSpec) -> JobSpec:
    """Add the mounts. Without an image there is no container for mounts, and a note says so."""
    images = _images(job)
    env = dict(job.env)
    given = [*filter(None, env.pop(_MOUNTS, "").split(",")), *options.get_list("mount")]
    idle = [] if any(images.values()) else [*given, *(name for name in env if name.startswith(PREFIX))]
    roles = dict(job.roles)
    for name, role in () if options.given("legacy") else job.roles.items():
        own = options.get_list(f"{kind_of_task(name)}.mount")
        idle += [] if images[name] else own
        roles[name] = replace(role, mounts=tuple(own) if images[name] else ())
    if idle:
        options.notes.append(f"{', '.join(dict.fromkeys(idle))}: has no effect, for there is no image")
    mounts = (*job.environment.mounts, *given) if any(images.values()) else ()
    environment = replace(job.environment, mounts=tuple(dict.fromkeys(mounts)))
    return replace(job, env=env, roles=roles, environment=environment)


def _with_files(options: SubmarineOptions, job: JobSpec) -> JobSpec:
    """Add the localised files; files below a role of the YAML file are for that role only. An absolute path is a mount
    if there is a container."""
    images = _images(job)
    common = _localised(options, "localization")
    roles = {}
    for name, role in job.roles.items():
        option = f"{kind_of_task(name)}.localization"
        own = () if options.given("legacy") else _localised(options, option, common)
        mounts = tuple(file.as_mount for file in own if file.mount and images[name])
        entries = dict.fromkeys((*role.files, *(file.entry for file in own)))
        files = tuple(entry for entry in entries if entry not in {file.entry for file in common})
        roles[name] = replace(role, files=files, mounts=(*role.mounts, *mounts))
        for one in (*common, *own):
            if one.mount and not images[name]:
                note = f"{one.mount} is {one.name} in the working directory of {name}, for it has no image"
                options.notes.append(note)
    files = tuple(dict.fromkeys((*job.files, *(file.entry for file in common))))
    mounts = tuple(file.as_mount for file in common if file.mount and any(images.values()))
    environment = replace(job.environment, mounts=(*job.environment.mounts, *mounts))
    return replace(job, roles=roles, files=files, environment=environment)


def _images(job: JobSpec) -> dict[str, str]:
    return {name: requested_image(runtime_variables(job, name)) for name in job.roles}


def _localised(
    options: SubmarineOptions, option: str, others: Sequence[option_values.Local] = ()
) -> tuple[option_values.Local, ...]:
    """Return the files that an option localises; two files with the same name are a mistake."""
    named = {one.name: one for one in others}
    found = []
    for text in options.get_list(option):
        local = option_values.read_localization(options, option, text)
        if local is None:
            continue
        other = named.setdefault(local.name, local)
        if other.remote != local.remote:
            both = f"{other.remote} and {local.remote} would both be {local.name!r} in the working directory"
            options.wrong(option, f"is {text!r}, but {both}: give one another name, as in {local.remote}:./other")
        found.append(local)
    return tuple(found)
