import jakarta.jws.WebMethod;
import jakarta.jws.WebService;

/** The procedures: one for each encoding of the payload. */
@WebService(name = "Calls", targetNamespace = Calls.NAMESPACE)
public interface Calls {
    String NAMESPACE = "urn:wattwire";

    @WebMethod
    byte[] echoBytes(byte[] data);

    /** Also for literals. */
    @WebMethod
    String echo(String data);

    @WebMethod
    RecordType echoRecord(RecordType data);
}
