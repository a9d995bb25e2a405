"""Server reflection: what services there are and what their messages look like, for tools such as
grpcurl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from angarium.doors.grpc import standard_messages
from angarium.doors.grpc.standard_messages import REFLECTION_VERSIONS, message_class
from angarium.wire.grpc import GrpcCode, streaming

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from google.protobuf.descriptor import FileDescriptor
    from google.protobuf.descriptor_pool import DescriptorPool

    from angarium.wire.grpc import Call, Method, Requests


class Reflection:
    """Tells of `services`, whose files lie in one of `pools`."""

    def __init__(self, services: Sequence[str], *pools: DescriptorPool) -> None:
        own = [_service(version) for version in REFLECTION_VERSIONS]
        self._services = sorted({*services, *own})
        self._pools = (*pools, standard_messages.POOL)

    def methods(self) -> dict[str, Method]:
        """Return the service's methods, by their paths: one for each version of it."""
        return {
            f"/{_service(version)}/ServerReflectionInfo": streaming(self._handler(version))
            for version in REFLECTION_VERSIONS
        }

    def _handler(self, version: str) -> Callable[[Requests, Call], Coroutine[Any, Any, None]]:
        request_class = message_class(f"grpc.reflection.{version}.ServerReflectionRequest")
        response_class = message_class(f"grpc.reflection.{version}.ServerReflectionResponse")

        async def answer(requests: Requests, call: Call) -> None:
            async for data in requests:
                request = request_class.FromString(data)
                response = response_class(valid_host=request.host, original_request=request)
                self._fill(response, request)
                await call.write(response.SerializeToString())

        return answer

    def _fill(self, response: Any, request: Any) -> None:
        try:
            match request.WhichOneof("message_request"):
                case "list_services":
                    for name in self._services:
                        response.list_services_response.service.add(name=name)
                case "file_by_filename":
                    self._add_files(response, "FindFileByName", request.file_by_filename)
                case "file_containing_symbol":
                    self._add_files_of_symbol(response, request.file_containing_symbol)
                case "all_extension_numbers_of_type":
                    # There are no extensions: what we serve is proto3.
                    name = request.all_extension_numbers_of_type
                    self._found("FindMessageTypeByName", name)
                    response.all_extension_numbers_response.base_type_name = name
                case "file_containing_extension":
                    raise KeyError("there are no extensions here")
                case _:
                    response.error_response.error_code = GrpcCode.INVALID_ARGUMENT
                    response.error_response.error_message = "the request asks for nothing"
        except KeyError as error:
            response.error_response.error_code = GrpcCode.NOT_FOUND
            response.error_response.error_message = str(error.args[0])

    def _add_files_of_symbol(self, response: Any, symbol: str) -> None:
        try:
            self._add_files(response, "FindFileContainingSymbol", symbol)
        except KeyError:
            # The pools know services by name, and methods only by their service.
            service, _, method = symbol.rpartition(".")
            if method not in self._found("FindServiceByName", service).methods_by_name:
                raise
            self._add_files(response, "FindFileContainingSymbol", service)

    def _add_files(self, response: Any, find: str, name: str) -> None:
        """Add a file, and those it stands on, which a client would ask for next."""
        files: dict[str, bytes] = {}
        _collect(self._found(find, name), files)
        response.file_descriptor_response.file_descriptor_proto.extend(files.values())

    def _found(self, find: str, name: str) -> Any:
        for pool in self._pools:
            try:
                return getattr(pool, find)(name)
            except KeyError:
                continue
        raise KeyError(f"{name[:256]!r} is not known here")


def _collect(file: FileDescriptor, files: dict[str, bytes]) -> None:
    if file.name not in files:
        files[file.name] = file.serialized_pb
        for one in file.dependencies:
            _collect(one, files)


def _service(version: str) -> str:
    return f"grpc.reflection.{version}.ServerReflection"
