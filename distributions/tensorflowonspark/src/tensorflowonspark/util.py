"""The name by which users' programs import `tensorflowonspark.node_environment`."""

from tensorflowonspark.node_environment import (
    find_in_path,
    get_ip_address,
    read_executor_id,
    single_node_env,
    write_executor_id,
)

__all__ = ["find_in_path", "get_ip_address", "read_executor_id", "single_node_env", "write_executor_id"]
