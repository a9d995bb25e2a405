// Many calls at once to gRPC's test service, cancelled, slow to read, or under way while the server
// closes; each case is told in a line.
//
//	storms HOST:PORT [drain]
package main

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	patience      = 60 * time.Second
	drainPatience = 10 * time.Minute // a server that is opened again may be slow to come
)

var failed bool

func tell(name string, work func(context.Context) error) { tellWithin(patience, name, work) }

func tellWithin(patience time.Duration, name string, work func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	if err := work(ctx); err != nil {
		failed = true
		fmt.Printf("FAILED %s: %v\n", name, err)
		return
	}
	fmt.Printf("ok %s\n", name)
	fmt.Fprintf(os.Stderr, "%s %.1f s\n", name, time.Since(began).Seconds())
}

func client(options ...grpc.DialOption) (pb.TestServiceClient, func()) {
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient(os.Args[1], options...)
	if err != nil {
		panic(err)
	}
	return pb.NewTestServiceClient(conn), func() { conn.Close() }
}

func sized(size int) *pb.Payload { return &pb.Payload{Body: make([]byte, size)} }

// together runs work many times at once; it returns the first error.
func together(count int, work func(int) error) error {
	var group sync.WaitGroup
	told := make(chan error, count)
	for number := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			told <- work(number)
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

func unary(ctx context.Context, service pb.TestServiceClient, sent, wanted int) error {
	answer, err := service.UnaryCall(ctx, &pb.SimpleRequest{Payload: sized(sent), ResponseSize: int32(wanted)})
	if err == nil && len(answer.GetPayload().GetBody()) != wanted {
		err = fmt.Errorf("%d bytes instead of %d", len(answer.GetPayload().GetBody()), wanted)
	}
	return err
}

// Calls of all sizes around frames and windows share one connection.
func sizes(ctx context.Context) error {
	service, end := client(grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1 << 24)))
	defer end()
	around := []int{0, 1, 5, 16_374, 16_379, 16_384, 16_389, 65_525, 65_530, 65_535, 65_540, 262_139, 262_144, 1_000_003}
	return together(len(around)*len(around), func(number int) error {
		sent, wanted := around[number/len(around)], around[number%len(around)]
		if err := unary(ctx, service, sent, wanted); err != nil {
			return fmt.Errorf("%d sent, %d wanted: %w", sent, wanted, err)
		}
		return nil
	})
}

// Readers that are slow and have small windows get everything, and hold up nobody else.
func slowReaders(ctx context.Context) error {
	service, end := client(grpc.WithStaticStreamWindowSize(65_535), grpc.WithStaticConnWindowSize(1<<20))
	defer end()
	const readers, answers, size = 20, 60, 50_000
	done := make(chan struct{})
	var late atomic.Int64
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				began := time.Now()
				if unary(ctx, service, 10, 10) != nil || time.Since(began) > 5*time.Second {
					late.Add(1)
				}
			}
		}
	}()
	err := together(readers, func(int) error {
		parameters := make([]*pb.ResponseParameters, answers)
		for number := range parameters {
			parameters[number] = &pb.ResponseParameters{Size: size}
		}
		stream, err := service.StreamingOutputCall(ctx, &pb.StreamingOutputCallRequest{ResponseParameters: parameters})
		if err != nil {
			return err
		}
		for number := range answers {
			answer, err := stream.Recv()
			if err != nil {
				return fmt.Errorf("answer %d: %w", number, err)
			}
			if len(answer.GetPayload().GetBody()) != size {
				return fmt.Errorf("answer %d has %d bytes", number, len(answer.GetPayload().GetBody()))
			}
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
	close(done)
	if err == nil && late.Load() > 0 {
		err = fmt.Errorf("%d other calls were late or failed", late.Load())
	}
	return err
}

// Requests that nobody reads for a while: flow control holds their client, and nothing is lost.
func longUploads(ctx context.Context) error {
	service, end := client()
	defer end()
	return together(8, func(int) error {
		stream, err := service.StreamingInputCall(ctx)
		if err != nil {
			return err
		}
		for range 200 {
			if err := stream.Send(&pb.StreamingInputCallRequest{Payload: sized(40_000)}); err != nil {
				return err
			}
		}
		answer, err := stream.CloseAndRecv()
		if err == nil && answer.AggregatedPayloadSize != 200*40_000 {
			err = fmt.Errorf("%d bytes arrived", answer.AggregatedPayloadSize)
		}
		return err
	})
}

// Calls that are given up at any moment leave a connection that works.
func cancelStorm(ctx context.Context) error {
	service, end := client()
	defer end()
	err := together(2_000, func(int) error {
		own, cancel := context.WithTimeout(ctx, time.Duration(rand.Intn(40_000))*time.Microsecond)
		defer cancel()
		err := unary(own, service, rand.Intn(100_000), rand.Intn(100_000))
		switch status.Code(err) {
		case codes.OK, codes.DeadlineExceeded, codes.Canceled:
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	// Windows of what was given up must have come back: far more than one window passes.
	return together(50, func(int) error { return unary(ctx, service, 700_000, 700_000) })
}

// Streams that are left in their middle give back what they held.
func abandonedStreams(ctx context.Context) error {
	service, end := client()
	defer end()
	err := together(200, func(int) error {
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := service.FullDuplexCall(own)
		if err != nil {
			return err
		}
		wish := []*pb.ResponseParameters{{Size: 100_000}, {Size: 100_000}, {Size: 100_000}}
		if err := stream.Send(&pb.StreamingOutputCallRequest{ResponseParameters: wish, Payload: sized(50_000)}); err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	})
	if err != nil {
		return err
	}
	return together(50, func(int) error { return unary(ctx, service, 700_000, 700_000) })
}

// Headers as large as they may be come through, larger ones are refused; the connection stays.
func metadataSizes(ctx context.Context) error {
	service, end := client()
	defer end()
	long := func(size int) context.Context {
		return metadata.AppendToOutgoingContext(ctx, "x-long", strings.Repeat("a", size))
	}
	for _, size := range []int{100, 1_000, 7_000} {
		if err := unary(long(size), service, 1, 1); err != nil {
			return fmt.Errorf("%d: %w", size, err)
		}
	}
	// Its own client refuses it, if the server has told how much it takes, and the server otherwise.
	switch err := unary(long(17_000), service, 1, 1); status.Code(err) {
	case codes.ResourceExhausted, codes.Internal:
	default:
		return fmt.Errorf("17,000: a refusal was expected, and %v came", err)
	}
	for number := range 300 {
		own := metadata.AppendToOutgoingContext(ctx, "x-varied", fmt.Sprint("value ", number), fmt.Sprint("x-name-", number), "%&=", "x-some-bin", string([]byte{0, 1, 255, byte(number)}))
		if err := unary(own, service, 1, 1); err != nil {
			return fmt.Errorf("header %d: %w", number, err)
		}
	}
	return nil
}

// Connections that come and go.
func connections(ctx context.Context) error {
	return together(200, func(int) error {
		service, end := client()
		defer end()
		for range 3 {
			if err := unary(ctx, service, 1_000, 1_000); err != nil {
				return err
			}
		}
		return nil
	})
}

// drain calls while the server is closed and opened again, until its input ends: a client must not
// notice.
func drain() {
	service, end := client(grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	defer end()
	var calls atomic.Int64
	var isOver atomic.Bool
	go func() {
		io.Copy(io.Discard, os.Stdin)
		isOver.Store(true)
	}()
	tellWithin(drainPatience, "drain", func(ctx context.Context) error {
		return together(30, func(int) error {
			for !isOver.Load() {
				if err := unary(ctx, service, 1_000, 1_000); err != nil {
					return err
				}
				calls.Add(1)
			}
			return nil
		})
	})
	fmt.Fprintf(os.Stderr, "%d calls\n", calls.Load())
}

func main() {
	if len(os.Args) > 2 {
		drain()
	} else {
		tell("sizes", sizes)
		tell("slow_readers", slowReaders)
		tell("long_uploads", longUploads)
		tell("cancel_storm", cancelStorm)
		tell("abandoned_streams", abandonedStreams)
		tell("metadata_sizes", metadataSizes)
		tell("connections", connections)
	}
	if failed {
		os.Exit(1)
	}
}
