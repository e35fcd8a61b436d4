"""What authors of policies, tasks and reports import."""

import subprocess
import sys

from urlab import evaluation


def test_every_name_of_the_front_door_is_there():
    assert sorted(evaluation._MODULES) == sorted(evaluation.__all__)
    assert all(getattr(evaluation, name) is not None for name in evaluation.__all__)


def test_an_unknown_name_is_refused_as_python_does():
    assert not hasattr(evaluation, "Nothing")


def test_the_server_starts_without_what_only_workers_need_and_the_client_without_the_server():
    program = (
        "import sys, urlab.evaluation.http.app; assert not {'mujoco', 'scipy'} & sys.modules.keys()\n"
        "for name in [one for one in sys.modules if one.startswith(('urlab', 'fastapi'))]: del sys.modules[name]\n"
        "from urlab.evaluation import EvalClient; assert 'fastapi' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
