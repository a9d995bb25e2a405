// What a Java service does with the broker; each case is told in a line. Messages are made from a
// descriptor set, so that nothing has to be generated.
//
//     java -cp 'jars/*' Story.java HOST:PORT TOPIC DESCRIPTOR-SET

import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.util.JsonFormat;
import com.google.rpc.ErrorInfo;
import io.grpc.*;
import io.grpc.Status.Code;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

public class Story {
  static final int TOGETHER = 100;
  static final int STREAMED = 500;
  static final int LARGE = 700_000;

  static FileDescriptor file;
  static ManagedChannel channel;
  static String topic;
  static boolean failed;

  interface Work { void run() throws Exception; }

  public static void main(String[] given) throws Exception {
    var set = FileDescriptorSet.parseFrom(Files.readAllBytes(Path.of(given[2])));
    file = FileDescriptor.buildFrom(set.getFile(0), new FileDescriptor[0]);
    channel = Grpc.newChannelBuilder(given[0], InsecureChannelCredentials.create()).build();
    topic = given[1];
    tell("create_topic", () -> call("CreateTopic", "{name: '" + topic + "', partitions: 1}", soon()));
    tell("publish", () -> publish(clear(1), soon()));
    tell("publish_large", () -> publish(new byte[LARGE], soon()));
    tell("publish_gzip", () -> publish(clear(2_000), soon().withCompression("gzip")));
    tell("publish_together", Story::publishTogether);
    tell("publish_stream", Story::publishStream);
    tell("subscribe_and_cancel", Story::subscribe);
    tell("deadline", Story::deadline);
    tell("error_details", Story::errorDetails);
    tell("unimplemented", Story::unimplemented);
    channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    System.exit(failed ? 1 : 0);
  }

  static void tell(String name, Work work) {
    try {
      work.run();
      System.out.println("ok " + name);
    } catch (Exception | AssertionError error) {
      failed = true;
      System.out.println("FAILED " + name + ": " + error);
    }
  }

  static CallOptions soon() {
    return CallOptions.DEFAULT.withDeadlineAfter(30, TimeUnit.SECONDS);
  }

  static byte[] clear(int times) {
    return "clear ".repeat(times).getBytes();
  }

  static DynamicMessage message(String name, String json) throws Exception {
    var made = DynamicMessage.newBuilder(file.findMessageTypeByName(name));
    JsonFormat.parser().merge(json, made);
    return made.build();
  }

  static String json(DynamicMessage message) throws Exception {
    return JsonFormat.printer().omittingInsignificantWhitespace().print(message);
  }

  static MethodDescriptor<DynamicMessage, DynamicMessage> method(String name, MethodDescriptor.MethodType type) {
    return MethodDescriptor.<DynamicMessage, DynamicMessage>newBuilder()
        .setType(type)
        .setFullMethodName("angarium.v1.Broker/" + name)
        .setRequestMarshaller(empty(name + "Request"))
        .setResponseMarshaller(empty(name + "Response"))
        .build();
  }

  static MethodDescriptor.Marshaller<DynamicMessage> empty(String name) {
    var found = file.findMessageTypeByName(name);
    var known = found == null ? file.findMessageTypeByName("PublishRequest") : found;
    return ProtoUtils.marshaller(DynamicMessage.getDefaultInstance(known));
  }

  static DynamicMessage call(String name, String json, CallOptions options) throws Exception {
    var described = method(name, MethodDescriptor.MethodType.UNARY);
    return ClientCalls.blockingUnaryCall(channel, described, options, message(name + "Request", json));
  }

  static String request(byte[] value) {
    var shown = Base64.getEncoder().encodeToString(value);
    return "{topic: '" + topic + "', record: {value: '" + shown + "'}}";
  }

  static void publish(byte[] value, CallOptions options) throws Exception {
    var answer = json(call("Publish", request(value), options));
    if (!answer.contains("\"offset\"")) throw new AssertionError("no offset in " + answer);
  }

  static void expect(Throwable error, Code code) {
    if (error == null || Status.fromThrowable(error).getCode() != code)
      throw new AssertionError(code + " was expected, and " + error + " came");
  }

  static void publishTogether() throws Exception {
    var described = method("Publish", MethodDescriptor.MethodType.UNARY);
    var waiting = new ArrayList<Future<DynamicMessage>>();
    for (int number = 0; number < TOGETHER; number++) {
      var given = message("PublishRequest", request(("together " + number).getBytes()));
      waiting.add(ClientCalls.futureUnaryCall(channel.newCall(described, soon()), given));
    }
    for (var one : waiting) one.get();
  }

  /** What came on a stream, in its order, and how it ended. */
  static class Heard implements ClientResponseObserver<DynamicMessage, DynamicMessage> {
    final BlockingQueue<DynamicMessage> answers = new LinkedBlockingQueue<>();
    final CompletableFuture<Throwable> end = new CompletableFuture<>();
    ClientCallStreamObserver<DynamicMessage> requests;

    public void beforeStart(ClientCallStreamObserver<DynamicMessage> stream) { requests = stream; }
    public void onNext(DynamicMessage answer) { answers.add(answer); }
    public void onError(Throwable error) { end.complete(error); }
    public void onCompleted() { end.complete(null); }
  }

  static Heard stream(String name, CallOptions options) {
    var heard = new Heard();
    var described = method(name, MethodDescriptor.MethodType.BIDI_STREAMING);
    ClientCalls.asyncBidiStreamingCall(channel.newCall(described, options), heard);
    return heard;
  }

  static List<?> field(com.google.protobuf.Message message, String name) {
    return (List<?>) message.getField(message.getDescriptorForType().findFieldByName(name));
  }

  static long number(Object message, String name) {
    var one = (com.google.protobuf.Message) message;
    return (Long) one.getField(one.getDescriptorForType().findFieldByName(name));
  }

  static void publishStream() throws Exception {
    var heard = stream("PublishStream", soon());
    for (int number = 0; number < STREAMED; number++) {
      var one = "{number: " + number + ", publish: " + request(("streamed " + number).getBytes()) + "}";
      heard.requests.onNext(message("PublishStreamRequest", one));
    }
    heard.requests.onCompleted();
    var error = heard.end.get(30, TimeUnit.SECONDS);
    if (error != null) throw new AssertionError(error.toString());
    int next = 0;
    for (var answer : heard.answers)
      for (var one : field(answer, "results"))
        if (number(one, "number") != next++) throw new AssertionError(next - 1 + " is not " + one);
    if (next != STREAMED) throw new AssertionError(next + " results of " + STREAMED);
  }

  static DynamicMessage opening() throws Exception {
    var interest = "{topic: '" + topic + "', start: {earliest: {}}}";
    return message("SubscribeRequest", "{open: {interests: [" + interest + "]}}");
  }

  static void subscribe() throws Exception {
    var heard = stream("Subscribe", soon());
    heard.requests.onNext(opening());
    for (long next = 0; next < 3 + TOGETHER + STREAMED; ) {
      var answer = heard.answers.poll(20, TimeUnit.SECONDS);
      if (answer == null) throw new AssertionError("nothing after offset " + next);
      for (var one : field(answer, "records"))
        if (number(one, "offset") != next++) throw new AssertionError(next - 1 + " is not " + one);
    }
    heard.requests.cancel("enough", null);
    expect(heard.end.get(20, TimeUnit.SECONDS), Code.CANCELLED);
    publish(clear(1), soon()); // the connection lives on
  }

  static void deadline() throws Exception {
    var heard = stream("Subscribe", CallOptions.DEFAULT.withDeadlineAfter(300, TimeUnit.MILLISECONDS));
    heard.requests.onNext(opening());
    expect(heard.end.get(20, TimeUnit.SECONDS), Code.DEADLINE_EXCEEDED);
  }

  static Throwable failure(String name, String json) throws Exception {
    try {
      call(name, json, soon());
      return null;
    } catch (StatusRuntimeException error) {
      return error;
    }
  }

  static void errorDetails() throws Exception {
    var error = failure("DescribeTopic", "{name: 'no-such-topic'}");
    expect(error, Code.NOT_FOUND);
    var key = Metadata.Key.of("x-angarium-code", Metadata.ASCII_STRING_MARSHALLER);
    var code = Status.trailersFromThrowable(error).get(key);
    if (!"NOT_FOUND".equals(code)) throw new AssertionError("x-angarium-code is " + code);
    var info = StatusProto.fromThrowable(error).getDetails(0).unpack(ErrorInfo.class);
    if (!info.getReason().equals("NOT_FOUND") || !info.getDomain().equals("angarium"))
      throw new AssertionError("details are " + info);
  }

  static void unimplemented() throws Exception {
    var described = method("Nothing", MethodDescriptor.MethodType.UNARY);
    try {
      ClientCalls.blockingUnaryCall(channel, described, soon(), message("PublishRequest", "{}"));
    } catch (StatusRuntimeException error) {
      expect(error, Code.UNIMPLEMENTED);
      return;
    }
    throw new AssertionError("it was answered");
  }
}
