import static java.nio.charset.StandardCharsets.UTF_8;

import com.eclipsesource.json.JsonObject;
import com.sun.xml.ws.client.ClientTransportException;
import com.sun.xml.ws.developer.JAXWSProperties;

import jakarta.xml.ws.BindingProvider;
import jakarta.xml.ws.Service;
import jakarta.xml.ws.WebServiceException;
import jakarta.xml.ws.soap.SOAPFaultException;

import wattwire.Kit;

import web.Cell;
import web.Tls;

import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.URI;

import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.xml.namespace.QName;

/** Dynamic proxies, one for each worker. */
final class Client {
    private static final QName SERVICE = new QName(Calls.NAMESPACE, "CallsService");
    private final String encoding;
    private final Calls[] ports;

    private Client(Kit kit, String address) throws IOException {
        encoding = Cell.encoding(kit);
        Service service = Service.create(URI.create(address + "?wsdl").toURL(), SERVICE);
        ports = new Calls[kit.workers()];
        for (int i = 0; i < ports.length; i++) {
            ports[i] = service.getPort(Calls.class);
            // The WSDL contains the server's own view of its address.
            ((BindingProvider) ports[i])
                    .getRequestContext()
                    .put(BindingProvider.ENDPOINT_ADDRESS_PROPERTY, address);
        }
    }

    static void ask(Kit kit) throws Exception {
        Node.prepare(kit);
        SSLContext tls = Tls.context(kit);
        if (tls != null) HttpsURLConnection.setDefaultSSLSocketFactory(tls.getSocketFactory());
        Client asking = new Client(kit, Cell.endpoint(kit, "an address"));
        long discoveryNs = kit.probe(asking::call);
        JsonObject effective =
                new JsonObject().add("client", "HttpURLConnection").add("tcp_nodelay", true);
        Node.ready(kit, tls, effective, discoveryNs);
        kit.calls(asking::call);
    }

    private byte[] call(int worker, byte[] message, long limitNs) throws IOException {
        Calls port = ports[worker];
        int limitMs = (int) ((limitNs + 999_999) / 1_000_000);
        var context = ((BindingProvider) port).getRequestContext();
        context.put(JAXWSProperties.REQUEST_TIMEOUT, limitMs);
        context.put(JAXWSProperties.CONNECT_TIMEOUT, limitMs);
        try {
            if (encoding.equals("record"))
                return RecordType.toMessage(port.echoRecord(RecordType.of(message)));
            if (encoding.equals("text"))
                return port.echo(new String(message, UTF_8)).getBytes(UTF_8);
            return port.echoBytes(message);
        } catch (SOAPFaultException error) {
            throw new IOException(error);
        } catch (WebServiceException error) {
            if (error.getCause() instanceof SocketTimeoutException) return null;
            if (error.getCause() instanceof IOException) throw (IOException) error.getCause();
            if (error instanceof ClientTransportException refused
                    && "http.status.code".equals(refused.getKey()))
                Cell.checkStatus((Integer) refused.getArguments()[0]);
            return Cell.NO_ANSWER;
        }
    }
}
