import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/** `Node HOST PORT WARM CALLS`: calls per second of a loop on java.net.http, without a kit. */
public final class Node {
    private static final String TEXT = "Hello World";

    private Node() {}

    public static void main(String[] arguments) throws Exception {
        URI address = URI.create("http://" + arguments[0] + ":" + arguments[1] + "/echo");
        int warm = Integer.parseInt(arguments[2]);
        int calls = Integer.parseInt(arguments[3]);
        // As the cell: Grizzly cannot read a request that offers HTTP/2 (the cell's page).
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        call(client, address);
        System.out.println("begun");
        System.out.flush();
        for (int i = 0; i < warm; i++) call(client, address);
        long startNs = System.nanoTime();
        System.out.println("warm");
        System.out.flush();
        for (int i = 0; i < calls; i++) call(client, address);
        System.out.println(calls * 1e9 / (System.nanoTime() - startNs));
    }

    private static void call(HttpClient client, URI address) throws Exception {
        HttpRequest request =
                HttpRequest.newBuilder(address)
                        .timeout(Duration.ofSeconds(5))
                        .header("Content-Type", "text/plain; charset=utf-8")
                        .POST(HttpRequest.BodyPublishers.ofString(TEXT))
                        .build();
        HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200 || !response.body().equals(TEXT)) {
            System.err.println(address + ": " + response.statusCode() + " " + response.body());
            System.exit(1);
        }
    }
}
