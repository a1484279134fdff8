"""`howdah.program`, under the name by which programs have imported it since the first version."""

import sys
from typing import TYPE_CHECKING

from howdah import program

if TYPE_CHECKING:  # type checkers do not see that the other module replaces this one
    from howdah.program import *  # noqa: F403
    from howdah.program import Member as Member
    from howdah.program import World as World
    from howdah.program import alive as alive
    from howdah.program import attempt as attempt
    from howdah.program import checkpoint_dir as checkpoint_dir
    from howdah.program import epoch as epoch
    from howdah.program import index as index
    from howdah.program import inside as inside
    from howdah.program import job_id as job_id
    from howdah.program import job_name as job_name
    from howdah.program import rank as rank
    from howdah.program import resume_from as resume_from
    from howdah.program import role as role
    from howdah.program import size as size
    from howdah.program import swap as swap
    from howdah.program import task as task

sys.modules[__name__] = program
