"""The messages of a shop, as `protoc` would describe them; for tests of Protobuf values."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

Field = descriptor_pb2.FieldDescriptorProto


def descriptors() -> bytes:
    """Return what protoc would write for an order, and a timestamp's definition with it."""
    known = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(known)
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", package="shop", syntax="proto3", dependency=[known.name]
    )
    status = file.enum_type.add(name="Status")
    status.value.add(name="OPEN", number=0)
    status.value.add(name="SHIPPED", number=1)
    line = file.message_type.add(name="Line")
    line.field.add(name="sku", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    line.field.add(name="count", number=2, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=Field.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=Field.TYPE_INT64, label=Field.LABEL_OPTIONAL)

    def add(name: str, kind: Any, *, repeated: bool = False, of: str = "") -> None:
        label = Field.LABEL_REPEATED if repeated else Field.LABEL_OPTIONAL
        number = len(order.field) + 1
        order.field.add(name=name, number=number, type=kind, label=label, type_name=of or None)

    add("customer", Field.TYPE_STRING)
    add("amount", Field.TYPE_DOUBLE)
    add("paid", Field.TYPE_BOOL)
    add("at", Field.TYPE_MESSAGE, of=".google.protobuf.Timestamp")
    add("lines", Field.TYPE_MESSAGE, repeated=True, of=".shop.Line")
    add("status", Field.TYPE_ENUM, of=".shop.Status")
    add("total", Field.TYPE_UINT64)
    add("tags", Field.TYPE_MESSAGE, repeated=True, of=".shop.Order.TagsEntry")
    add("notes", Field.TYPE_STRING, repeated=True)
    return descriptor_pb2.FileDescriptorSet(file=[known, file]).SerializeToString()


def an_order(**members: Any) -> bytes:
    """Return an order as it travels."""
    pool = descriptor_pool.DescriptorPool()
    for one in descriptor_pb2.FileDescriptorSet.FromString(descriptors()).file:
        pool.Add(one)
    message: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    written: bytes = message(**members).SerializeToString()
    return written
