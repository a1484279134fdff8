"""Submarine's `job run`, 0.1 to 0.4: its options, its YAML, and its two runtimes.

`options` takes the command line apart, `yamlfile` the file of -f, `parts` what options have in them; `service` and
`tony` make the roles, as YARN's services had them or as TonY has. What differs is in docs/coming-from-submarine.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from howdah.data import uris
from howdah.dialects import Parsed
from howdah.dialects.submarine import launch, parts, service, tony
from howdah.dialects.submarine.options import FLAGS, OPTIONS, PAGE, Options, taken_apart
from howdah.errors import SpecError, StagingError
from howdah.spec import Environment, Input, JobSpec
from howdah.spec.check import nearest

__all__ = ["FLAGS", "OPTIONS", "PAGE", "Submarine", "words"]

FRAMEWORKS = ("tensorflow", "pytorch", "mxnet")
_OLD, _NEW = "org.apache.hadoop.yarn.submarine.client.cli.Cli", "org.apache.submarine.client.cli.Cli"
_RUNTIME = "YARN_CONTAINER_RUNTIME_"
_MOUNTS = f"{_RUNTIME}DOCKER_MOUNTS"


def words(argv: Sequence[str]) -> tuple[str, list[str]]:
    """The class that was called ("" for none; a jar is left out), and what comes after it."""
    rest = list(argv)
    if rest and rest[0].endswith(".jar"):
        rest.pop(0)
    return (rest.pop(0), rest) if rest and rest[0] in (_OLD, _NEW) else ("", rest)


class Submarine:
    """Files and paths are relative to `folder`, by default where the command is typed. `hadoop` is the directory of
    Hadoop's configuration; `home` overrides where it says that the user's files are, and `is_directory` who is asked
    about what is on a cluster."""

    def __init__(
        self,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        hadoop: str = "",
        home: str = "",
        is_directory: Callable[[str], bool] | None = None,
    ) -> None:
        self.folder, self.environ = folder or Path.cwd(), os.environ if environ is None else environ
        self.hadoop, self.home, self._is_directory = hadoop, home, is_directory or self._there

    def parse(self, argv: Sequence[str]) -> Parsed:
        return self.job(self.read(argv))

    def read(self, argv: Sequence[str]) -> Options:
        """The options of `job run …`, those of its YAML file among them.

        Raises:
            SpecError, StagingError: the file is none.
        """
        name, rest = words(argv)
        if rest[:2] != ["job", "run"]:
            raise SpecError.at(" ".join(rest[:2]) or "job run", "is missing" if not rest else "is not job run")
        options = taken_apart(rest[2:])
        if options.text("f"):
            from howdah.dialects.submarine import yamlfile  # YAML is slow to import

            yamlfile.add(options, self.folder)
        options.misread = bool(options.mistakes)
        if tony.wanted(options) or (name == _NEW if name else self._site_says_tony()):
            options.runtime = "tony"
        return options

    def job(self, options: Options) -> Parsed:
        """The job of these options.

        Raises:
            SpecError: everything that is wrong with them.
        """
        self._check(options)
        commands = launch.commands(options, lambda: self._home(options))
        if options.mistakes:
            raise SpecError(options.mistakes)
        tonys = options.runtime == "tony" or options.text("framework").lower() == "mxnet"
        if tonys and not commands.roles:  # TensorBoard alone
            options.notes += [f"--conf {text}: has no effect, there is no task" for text in options.listed("conf")]
        if tonys and commands.roles:
            parsed = tony.job(options, commands, self.folder, self.environ, self.hadoop)
        else:
            parsed = Parsed(service.job(options, commands))
        job = self._with_files(options, self._with_variables(options, launch.with_board(options, parsed.job, commands)))
        job = replace(job, links=launch.links(options, job, commands))
        if options.mistakes:
            raise SpecError(options.mistakes)
        variables = self._login(options)
        notes = (*options.notes, *parsed.notes, *service.notes(options, job))
        origins = {**parsed.origins, **launch.origins(options, job)}
        return Parsed(job, origins, tuple(dict.fromkeys(notes)), variables)

    def _check(self, options: Options) -> None:
        framework = options.text("framework", FRAMEWORKS[0]).lower()
        if framework not in FRAMEWORKS:
            options.wrong("framework", f"is {framework!r}, must be one of {', '.join(FRAMEWORKS)}")
            options.mistakes[-1] = replace(options.mistakes[-1], nearest=nearest(framework, FRAMEWORKS))
        if not options.text("name"):
            options.absent("name", ": give the job a name")
        if framework == "pytorch" and (options.number("num_ps", 0) or options.text("ps_launch_cmd")):
            options.wrong(
                "num_ps", "can't be for PyTorch, whose workers meet without servers: leave out --num_ps, --ps_…"
            )
        if framework != "mxnet" and options.number("num_schedulers", 0):
            options.wrong("num_schedulers", "is for --framework mxnet alone: leave it out")
        for one, other in (("keytab", "principal"), ("principal", "keytab")):
            if options.text(one) and not options.text(other):
                options.wrong(other, f"is missing: --{one} needs it")
        if options.text("keytab") and not (self.folder / options.text("keytab")).is_file():
            options.wrong("keytab", f"is {options.text('keytab')!r}: no such file on this machine")

    def _login(self, options: Options) -> Mapping[str, str]:
        """Kerberos logs in by the keytab itself, in this process alone; no ticket of the user's is touched."""
        if options.given("distribute_keytab"):
            options.notes.append("--distribute_keytab: the keytab stays here, tasks get tokens of HDFS instead")
        if not options.text("keytab") or options.given("insecure"):
            return {}
        keytab = (self.folder / options.text("keytab")).absolute()
        return {"KRB5_CLIENT_KTNAME": f"FILE:{keytab}", "KRB5CCNAME": "MEMORY:howdah"}

    # Files and variables

    def _with_variables(self, options: Options, job: JobSpec) -> JobSpec:
        env = parts.variables(options, "env")
        mounts = [*filter(None, env.pop(_MOUNTS, "").split(",")), *options.listed("mount")]
        unheard = [name for name in env if name.startswith(_RUNTIME)]
        if unheard:
            options.notes.append(
                f"{', '.join(unheard)}: is not told to YARN, its network and so on are the cluster's ({PAGE})"
            )
        inside = {name.removeprefix("DOCKER_"): value for name, value in env.items() if name.startswith("DOCKER_")}
        roles = dict(job.roles)
        for name in () if options.given("legacy") else roles:
            kind = service.kind(name)
            roles[name] = replace(roles[name], env={**roles[name].env, **parts.variables(options, f"{kind}.env")})
            mounts += options.listed(f"{kind}.mount")
        image = options.text("docker_image")
        environment = Environment(image=image, mounts=tuple(dict.fromkeys(mounts))) if image else job.environment
        return replace(job, roles=roles, env={**job.env, **inside, **env}, environment=environment)

    def _with_files(self, options: Options, job: JobSpec) -> JobSpec:
        files, inputs, mounts = [*job.files], [*job.inputs], [*job.environment.mounts]
        for local in _localised(options):
            if self._is_tree(options, local.remote):
                inputs.append(Input(local.remote, local.name, tuple(job.roles), share="all"))
            else:
                files.append(f"{local.remote}#{local.name}")
            if local.mount and job.environment.image:
                mounts.append(f"{local.name}:{local.mount}:rw")
            elif local.mount:
                options.notes.append(
                    f"{local.mount} is {local.name} in the working directory, for there is no --docker_image"
                )
        environment = replace(job.environment, mounts=tuple(mounts))
        return replace(job, files=tuple(dict.fromkeys(files)), inputs=tuple(inputs), environment=environment)

    def _is_tree(self, options: Options, remote: str) -> bool:
        """Of what this machine has, whoever stages it takes care."""
        try:
            return uris.has_scheme(remote) and self._is_directory(remote)
        except StagingError as error:
            options.wrong("localization", f"names what can't be read: {error}")
            return False

    def _there(self, uri: str) -> bool:
        from howdah.data.fs import filesystem  # most command lines name nothing that is elsewhere

        entry = filesystem(uri, self.hadoop).stat(uri)
        return entry is not None and entry.is_dir

    def _home(self, options: Options) -> str:
        """Where the user's files are: on the cluster, else here."""
        if not self.home:
            from howdah.data import hadoop_conf  # most command lines name all their paths
            from howdah.hadoop import identity

            conf = hadoop_conf.load(hadoop_conf.directory(self.hadoop))
            root = hadoop_conf.default_filesystem(conf)
            principal = options.text("principal") if identity.is_secure(conf) else ""
            user = re.split("[/@]", principal, maxsplit=1)[0]
            self.home = str(self.folder) if root.startswith("file:") else hadoop_conf.home(conf, root, user)
        return self.home

    def _site_says_tony(self) -> bool:
        """`submarine.xml`, later `submarine-site.xml`, beside Hadoop's own files."""
        from howdah.data import hadoop_conf

        folder = hadoop_conf.directory(self.hadoop)
        sites = [Path(folder, name) for name in ("submarine.xml", "submarine-site.xml")] if folder else []
        raw, _ = hadoop_conf.merge(sites)
        return "tony" in raw.get("submarine.runtime.class", "").lower()


def _localised(options: Options) -> Iterator[parts.Local]:
    kinds: Iterable[str] = () if options.given("legacy") else ("worker.", "ps.", "scheduler.")
    for option in ("localization", *(f"{kind}localization" for kind in kinds)):
        for text in options.listed(option):
            local = parts.localised(options, option, text)
            if local is not None:
                yield local
