#!/usr/bin/env python3
"""Runtimes with network code of their own under the switch: each program is both ends, prints what it would without, and its bytes go
by SDP. They make their sockets, wait and close in ways that C programs do not: libuv closes by the number of the system call, Java's
sockets are IPv6 ones with mapped addresses, and its threads are woken from a read by a descriptor put in place of the closed one."""

import unittest

from carried import CarriedTest

NODE = """
const http = require('http'), net = require('net');
const big = Buffer.alloc(2000000, 7), listen = (s, then) => s.listen(0, '127.0.0.1', () => then(s.address().port));
const server = http.createServer((q, r) => { q.on('data', () => {}); q.on('end', () => r.end(big)); });
listen(server, async port => {
  const agent = new http.Agent({keepAlive: true, maxSockets: 8});
  const get = i => new Promise((done, failed) => {
    const q = http.request({host: '127.0.0.1', port, agent, method: 'POST', path: '/' + i}, r => {
      const parts = []; r.on('data', d => parts.push(d));
      r.on('end', () => Buffer.concat(parts).equals(big) ? done() : failed(new Error('differs')));
    });
    q.on('error', failed); q.end(Buffer.alloc(50000));
  });
  await Promise.all([...Array(20).keys()].map(get));
  console.log('http');
  listen(net.createServer(c => c.pipe(c)), port => {
    const c = net.connect(port, '127.0.0.1'); let got = 0;
    c.on('data', d => got += d.length); c.on('end', () => { console.log(got); halfOpen(); });
    for (let i = 0; i < 50; i++) c.write(Buffer.alloc(100000, i));
    c.end();
  });
});
const halfOpen = () => listen(net.createServer({allowHalfOpen: true}, k => setTimeout(() => k.end('late'), 100)), port => {
  const d = net.connect(port, '127.0.0.1'); d.end();
  d.on('data', x => console.log(String(x))); d.on('close', destroyed);
});
const destroyed = () => listen(net.createServer(k => setTimeout(() => k.destroy(), 100)), port => {
  const d = net.connect(port, '127.0.0.1'); d.on('end', () => console.log('end')); d.on('close', reset);
});
const reset = () => listen(net.createServer(k => setTimeout(() => k.resetAndDestroy(), 100)), port => {
  const d = net.connect(port, '127.0.0.1');
  d.on('error', e => console.log(e.code)); d.on('close', () => process.exit(0));
});
"""
JAVA = """
import com.sun.net.httpserver.*; import java.io.*; import java.net.*; import java.net.http.*; import java.nio.*;
import java.nio.channels.*; import java.util.*; import java.util.concurrent.*;

class Both {
  static final byte[] big = new byte[2000000];

  static void http() throws Exception {
    var server = HttpServer.create(new InetSocketAddress("localhost", 0), 0);
    server.createContext("/", x -> {
      x.getRequestBody().readAllBytes(); x.sendResponseHeaders(200, big.length);
      try (var out = x.getResponseBody()) { out.write(big); }
    });
    server.setExecutor(Executors.newFixedThreadPool(4)); server.start();
    var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    var all = new ArrayList<CompletableFuture<HttpResponse<byte[]>>>();
    for (int i = 0; i < 10; i++) {
      var uri = URI.create("http://localhost:" + server.getAddress().getPort() + "/" + i);
      var post = HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.ofByteArray(new byte[50000])).build();
      all.add(client.sendAsync(post, HttpResponse.BodyHandlers.ofByteArray()));
    }
    for (var each : all) if (!Arrays.equals(each.get().body(), big)) throw new Exception("differs");
    server.stop(0);
    System.out.println("http");
  }

  static void sockets() throws Exception {
    var listener = new ServerSocket(0);
    var a = new Socket("localhost", listener.getLocalPort()); var b = listener.accept();
    a.setTcpNoDelay(true); a.setSoTimeout(100);
    try { a.getInputStream().read(); } catch (SocketTimeoutException e) { System.out.println("time-out"); }
    b.getOutputStream().write("hello\\n".getBytes());
    System.out.println(new BufferedReader(new InputStreamReader(a.getInputStream())).readLine());
    a.shutdownOutput(); System.out.println(b.getInputStream().read()); b.close();
    System.out.println(a.getInputStream().read()); a.close();
    var c = new Socket("localhost", listener.getLocalPort()); var d = listener.accept();
    d.getOutputStream().write(1); c.getInputStream().read();
    var reader = new Thread(() -> {
      try { c.getInputStream().read(); } catch (IOException e) { System.out.println(e.getMessage()); }
    });
    reader.start(); Thread.sleep(100); c.close(); reader.join();
    System.out.println(d.getInputStream().read());
  }

  static void channels() throws Exception {
    var listener = ServerSocketChannel.open().bind(new InetSocketAddress("localhost", 0));
    var a = SocketChannel.open(); a.configureBlocking(false); a.connect(listener.getLocalAddress());
    var b = listener.accept(); b.configureBlocking(false);
    var selector = Selector.open(); a.register(selector, SelectionKey.OP_CONNECT); selector.select(); a.finishConnect();
    b.register(selector, SelectionKey.OP_READ); a.keyFor(selector).interestOps(SelectionKey.OP_WRITE);
    var out = ByteBuffer.wrap(big); var in = ByteBuffer.allocate(big.length);
    while (in.hasRemaining()) {
      selector.select();
      for (var key : selector.selectedKeys()) {
        if (key.isReadable()) b.read(in);
        if (key.isWritable()) { a.write(out); if (!out.hasRemaining()) key.interestOps(0); }
      }
      selector.selectedKeys().clear();
    }
    System.out.println(Arrays.equals(in.array(), big)); a.close(); b.close();
    var file = File.createTempFile("file", null);
    try (var to = new FileOutputStream(file)) { to.write(big); }
    var c = SocketChannel.open(listener.getLocalAddress()); var d = listener.accept();
    var sender = new Thread(() -> {
      try (var from = FileChannel.open(file.toPath())) {
        for (long at = 0; at < big.length;) at += from.transferTo(at, big.length - at, c);
        c.close();
      } catch (IOException e) { System.out.println(e); }
    });
    sender.start(); in = ByteBuffer.allocate(big.length + 1); while (d.read(in) >= 0); sender.join(); file.delete();
    System.out.println(in.position() == big.length && Arrays.equals(Arrays.copyOf(in.array(), big.length), big));
  }

  public static void main(String[] words) throws Exception {
    new Random(1).nextBytes(big);
    http(); sockets(); channels(); System.exit(0);
  }
}
"""
PERL = """
use IO::Socket::INET; use IO::Select; use strict;
my $listener = IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 5) or die $!;
if (my $child = fork) {
  for (1 .. 3) {
    my $c = $listener->accept; my $line = <$c>; print $c "[$line]" x 1000; close $c;
  }
  waitpid $child, 0; exit 0;
}
for (1 .. 3) {
  my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $listener->sockport) or die $!;
  print $s "word $_\\n"; $s->flush; IO::Select->new($s)->can_read(10) or die "nothing";
  local $/; my $all = <$s>; print length($all), " ", substr($all, 0, 7), "\\n";
}
"""


class RuntimesTest(CarriedTest):
    def both_ways(self, *command):
        """What it prints without the switch it prints with it."""
        plain = self.run_program(*command, switched=False)[0]
        self.assertEqual(self.run_program(*command)[0], plain)
        return plain

    def test_node(self):
        said = self.both_ways(self.program("node"), "-e", NODE)
        self.assertEqual(said, "http\n5000000\nlate\nend\nECONNRESET\n")
        self.check_path(True, 2 * 45_000_000)

    def test_java(self):
        source = self.folder / "Both.java"
        source.write_text(JAVA)
        said = self.both_ways(self.program("java"), "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1", source)
        self.assertEqual(said, "http\ntime-out\nhello\n-1\n-1\nSocket closed\n-1\ntrue\ntrue\n")
        self.check_path(True, 2 * 24_000_000)

    def test_perl(self):
        said = self.both_ways(self.program("perl"), "-e", PERL)
        self.assertEqual(said, "9000 [word 1\n9000 [word 2\n9000 [word 3\n")
        self.check_path(True, 2 * 27_000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
