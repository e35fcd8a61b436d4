from urlab_wire.ops.runtime import OPTION_FIELDS

REFERENCE = """
    timestep gravity wind magnetic density viscosity impratio tolerance iterations ls_iterations integrator cone
    solver noslip_iterations noslip_tolerance ccd_iterations ccd_tolerance enable_multiccd enable_sleep
    sleep_tolerance disableflags enableflags num_worker_threads"""


def test_the_sim_options_are_those_of_the_protocol_reference() -> None:
    assert sorted(OPTION_FIELDS) == sorted(REFERENCE.split())
