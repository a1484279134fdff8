"""Tells the addresses that a job names how it ended: a POST of JSON, within a limit, before the master ends.

The rule: the job's outcome never depends on an address, and no address is printed, because it may be a secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Mapping

from howdah.spec import JobSpec, Outcome
from howdah.spec.validation import HTTP_ADDRESS

LIMIT_S = 10.0
"""How long the end of a job waits for all addresses together."""
PAUSES_S = (0.5, 1.5)
"""The pauses before the second and the third try."""
POLL_S = 0.05


def addresses(job: JobSpec, secrets: Mapping[str, bytes]) -> list[str]:
    """Return the addresses that `notify` names; for the name of a secret its value, and "" if that is no address."""
    found = [secrets[each].decode(errors="replace").strip() if each in secrets else each for each in job.notify]
    return [url if HTTP_ADDRESS.fullmatch(url) else "" for url in found]


def notice_of(job: JobSpec, job_id: str, outcome: Outcome) -> dict[str, str]:
    """Return what is posted. `text` is what chat services show."""
    state, reason = outcome.state.value, str(outcome.diagnostics)
    text = f"{job.name} ({job_id}) {state}{': ' * bool(reason)}{reason}"
    return {"text": text, "id": job_id, "name": job.name, "state": state, "diagnostics": reason}


async def tell_end(
    job: JobSpec, job_id: str, secrets: Mapping[str, bytes], outcome: Outcome, limit_s: float = LIMIT_S
) -> None:
    """Tell all addresses of the job at the same time; what cannot be told is printed, without the address."""
    urls = addresses(job, secrets)
    silent = f"no answer within {limit_s:g} s"
    problems = dict.fromkeys(range(len(urls)), silent)
    body, deadline = json.dumps(notice_of(job, job_id, outcome)).encode(), time.monotonic() + limit_s

    def post(number: int) -> None:
        if problem := _post(urls[number], body, deadline, silent):
            problems[number] = problem
        else:
            del problems[number]

    # Daemons: the lookup of a name has no limit, and must not hold up the end of the process.
    threads = [threading.Thread(target=post, args=(number,), daemon=True) for number in range(len(urls))]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        await asyncio.sleep(POLL_S)
    for number, problem in sorted(problems.items()):
        print(f"notify.{number} was not told of the job's end: {problem}", file=sys.stderr, flush=True)


def _post(url: str, body: bytes, deadline: float, silent: str) -> str:
    """Post the body, up to three times; return why it was not taken, "" if it was, and `silent` without an answer."""
    import http.client  # a job without addresses needs none of these
    import urllib.error

    from howdah.master.patient_post import post

    if not url:
        return "the secret is no address, https://… without a password"
    problem = ""
    for pause in (*PAUSES_S, 0.0):
        try:
            post(url, body, max(deadline - time.monotonic(), 0.1))
            return ""
        except urllib.error.HTTPError as error:
            problem = f"HTTP {error.code}"
            with contextlib.suppress(OSError):
                error.close()
            if error.code < 500 and error.code != 429:
                return problem
        except urllib.error.URLError as error:
            problem = type(error.reason).__name__ if isinstance(error.reason, OSError) else "no connection"
        except TimeoutError:  # the address may have taken the message: another try would tell it twice
            return silent
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = type(error).__name__  # its text may have the address
        if time.monotonic() + pause > deadline:
            break
        time.sleep(pause)
    return problem
