// What a Go service does with the broker, case by case; each is told in a line.
//
//	story HOST:PORT TOPIC
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	pb "judges/broker"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	together = 100
	streamed = 500
	large    = 700_000
)

var (
	failed bool
	topic  string
	broker pb.BrokerClient
	conn   *grpc.ClientConn
)

func tell(name string, work func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := work(ctx); err != nil {
		failed = true
		fmt.Printf("FAILED %s: %v\n", name, err)
		return
	}
	fmt.Printf("ok %s\n", name)
}

func expect(err error, code codes.Code) error {
	if status.Code(err) != code {
		return fmt.Errorf("%v was expected, and %v came", code, err)
	}
	return nil
}

func request(value []byte) *pb.PublishRequest {
	return &pb.PublishRequest{Topic: topic, Record: &pb.NewRecord{Value: value}}
}

func earliest() *pb.SubscribeRequest {
	start := &pb.Start{Place: &pb.Start_Earliest_{Earliest: &pb.Start_Earliest{}}}
	open := &pb.SubscribeRequest_Open{Interests: []*pb.Interest{{Topic: topic, Start: start}}}
	return &pb.SubscribeRequest{Request: &pb.SubscribeRequest_Open_{Open: open}}
}

func publish(ctx context.Context, value []byte, options ...grpc.CallOption) error {
	answer, err := broker.Publish(ctx, request(value), options...)
	if err == nil && answer.Ack.Offset == nil {
		err = fmt.Errorf("no offset in %v", answer)
	}
	return err
}

func publishTogether(ctx context.Context) error {
	var group sync.WaitGroup
	told := make(chan error, together)
	for number := range together {
		group.Add(1)
		go func() {
			defer group.Done()
			told <- publish(ctx, fmt.Appendf(nil, "together %d", number))
		}()
	}
	group.Wait()
	close(told)
	for err := range told {
		if err != nil {
			return err
		}
	}
	return nil
}

func publishStream(ctx context.Context) error {
	stream, err := broker.PublishStream(ctx)
	if err != nil {
		return err
	}
	go func() {
		for number := range streamed {
			one := &pb.PublishStreamRequest_Publish{Publish: request(fmt.Appendf(nil, "streamed %d", number))}
			if stream.Send(&pb.PublishStreamRequest{Number: uint64(number), Request: one}) != nil {
				return
			}
		}
		stream.CloseSend()
	}()
	next := uint64(0)
	for {
		answer, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		for _, one := range answer.Results {
			if one.Number != next || one.Error != nil {
				return fmt.Errorf("result %d was expected, and %v came", next, one)
			}
			next++
		}
	}
	if next != streamed {
		return fmt.Errorf("%d results of %d", next, streamed)
	}
	return nil
}

func subscribe(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := broker.Subscribe(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(earliest()); err != nil {
		return err
	}
	if _, err := stream.Header(); err != nil {
		return err
	}
	wanted := 3 + together + streamed
	for next := int64(0); next < int64(wanted); {
		answer, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, one := range answer.Records {
			if one.GetOffset() != next {
				return fmt.Errorf("offset %d was expected, and %d came", next, one.GetOffset())
			}
			next++
		}
	}
	cancel()
	for err == nil {
		_, err = stream.Recv()
	}
	if err := expect(err, codes.Canceled); err != nil {
		return err
	}
	// The connection lives on.
	again, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	return publish(again, []byte("after a cancelled call"))
}

func deadline(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	stream, err := broker.Subscribe(ctx)
	if err == nil {
		err = stream.Send(earliest())
	}
	for err == nil {
		_, err = stream.Recv()
	}
	return expect(err, codes.DeadlineExceeded)
}

func errorDetails(ctx context.Context) error {
	var trailer metadata.MD
	_, err := broker.DescribeTopic(ctx, &pb.DescribeTopicRequest{Name: "no-such-topic"}, grpc.Trailer(&trailer))
	if wrong := expect(err, codes.NotFound); wrong != nil {
		return wrong
	}
	if found := trailer.Get("x-angarium-code"); len(found) != 1 || found[0] != "NOT_FOUND" {
		return fmt.Errorf("x-angarium-code is %v", found)
	}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Reason == "NOT_FOUND" && info.Domain == "angarium" {
			return nil
		}
	}
	return fmt.Errorf("no ErrorInfo in %v", status.Convert(err).Details())
}

func unimplemented(ctx context.Context) error {
	var answer pb.PublishResponse
	for _, method := range []string{"/angarium.v1.Broker/Nothing", "/angarium.v1.Nobody/Publish"} {
		if err := expect(conn.Invoke(ctx, method, request(nil), &answer), codes.Unimplemented); err != nil {
			return err
		}
	}
	return nil
}

func health(ctx context.Context) error {
	check := &grpc_health_v1.HealthCheckRequest{Service: "angarium.v1.Broker"}
	client := grpc_health_v1.NewHealthClient(conn)
	answer, err := client.Check(ctx, check)
	if err == nil && answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		err = fmt.Errorf("it says %v", answer.Status)
	}
	if err != nil {
		return err
	}
	watching, err := client.Watch(ctx, check)
	if err == nil {
		_, err = watching.Recv()
	}
	if err != nil {
		return err
	}
	_, err = client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "nobody"})
	return expect(err, codes.NotFound)
}

func main() {
	var err error
	if conn, err = grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		panic(err)
	}
	defer conn.Close()
	topic, broker = os.Args[2], pb.NewBrokerClient(conn)
	tell("create_topic", func(ctx context.Context) error {
		_, err := broker.CreateTopic(ctx, &pb.CreateTopicRequest{Name: topic, Partitions: 1})
		return err
	})
	tell("publish", func(ctx context.Context) error { return publish(ctx, []byte("the road is clear")) })
	tell("publish_large", func(ctx context.Context) error { return publish(ctx, make([]byte, large)) })
	tell("publish_gzip", func(ctx context.Context) error {
		return publish(ctx, bytes.Repeat([]byte("clear "), 2_000), grpc.UseCompressor(gzip.Name))
	})
	tell("publish_together", publishTogether)
	tell("publish_stream", publishStream)
	tell("subscribe_and_cancel", subscribe)
	tell("deadline", deadline)
	tell("error_details", errorDetails)
	tell("unimplemented", unimplemented)
	tell("health", health)
	if failed {
		os.Exit(1)
	}
}
