package main

import (
	_ "embed"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// What protoc makes of autoscaler.proto: the messages need no generated code.
//
//go:embed autoscaler.binpb
var compiled []byte

var service = "/proto.Plugin/"

var files = func() *protoregistry.Files {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(compiled, set); err != nil {
		panic(err)
	}
	made, err := protodesc.NewFiles(set)
	if err != nil {
		panic(err)
	}
	return made
}()

type message struct{ *dynamicpb.Message }

func made(name string) message {
	found, err := files.FindDescriptorByName(protoreflect.FullName("proto." + name))
	if err != nil {
		panic(err)
	}
	return message{dynamicpb.NewMessage(found.(protoreflect.MessageDescriptor))}
}

func (m message) field(name string) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(protoreflect.Name(name))
}

func (m message) with(name string, value any) message {
	switch given := value.(type) {
	case message:
		m.Set(m.field(name), protoreflect.ValueOfMessage(given.Message))
	case []message:
		list := m.Mutable(m.field(name)).List()
		for _, each := range given {
			list.Append(protoreflect.ValueOfMessage(each.Message))
		}
	case []int32:
		list := m.Mutable(m.field(name)).List()
		for _, each := range given {
			list.Append(protoreflect.ValueOfEnum(protoreflect.EnumNumber(each)))
		}
	case protoreflect.EnumNumber:
		m.Set(m.field(name), protoreflect.ValueOfEnum(given))
	default:
		m.Set(m.field(name), protoreflect.ValueOf(value))
	}
	return m
}

func (m message) text(name string) string  { return m.Get(m.field(name)).String() }
func (m message) number(name string) int64 { return m.Get(m.field(name)).Int() }
func (m message) has(name string) bool     { return m.Has(m.field(name)) }
func (m message) inner(name string) message {
	return message{m.Get(m.field(name)).Message().Interface().(*dynamicpb.Message)}
}
func (m message) each(name string) []message {
	list := m.Get(m.field(name)).List()
	found := []message{}
	for i := 0; i < list.Len(); i++ {
		found = append(found, message{list.Get(i).Message().Interface().(*dynamicpb.Message)})
	}
	return found
}
